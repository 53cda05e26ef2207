"""The GPU memory of a run as a report."""
