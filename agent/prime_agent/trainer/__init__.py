"""The running trainer: its process, output, progress and services."""
