"""A tracker of experiments (W&B) as evidence of a run's life."""
