"""From environment variables to stores, buckets, providers and a running control plane."""
