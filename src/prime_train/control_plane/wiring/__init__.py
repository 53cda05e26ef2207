"""Builds stores, buckets, providers and a running control plane from environment variables."""
