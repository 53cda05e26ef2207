"""The report on the cost of a run."""
