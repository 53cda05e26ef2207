"""The search for a machine as a report."""
