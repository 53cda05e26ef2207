"""Estimates how long a training takes on a machine and what it costs."""
