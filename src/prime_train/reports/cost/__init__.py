"""The cost of a run as a report."""
