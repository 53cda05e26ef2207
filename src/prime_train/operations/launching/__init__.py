"""Launching runs: reading the config, checking what is known to fail, and storing the new run."""
