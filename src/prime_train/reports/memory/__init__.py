"""The report on a run's GPU memory."""
