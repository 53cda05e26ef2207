"""Limits of numbers that configs, heartbeats and manifests share."""

STEP_MAX = 10**12 - 1
"""The highest step: keys have twelve digits for it."""


CREATED_S_MAX = 253_402_300_799
"""The latest accepted creation time, in seconds: the last second of the year 9999."""

DISK_GIB_MAX = 100_000
"""The largest disk that is rented, in GiB."""
