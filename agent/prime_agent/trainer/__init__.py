"""The trainer while it runs: its process, its output, its progress and its services."""
