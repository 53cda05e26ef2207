"""The GPUs of the machine: read through the driver, judged, and reported in heartbeats."""
