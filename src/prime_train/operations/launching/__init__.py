"""Launching runs: reading the config, checking it for known problems, and storing the new run."""
