"""A run as its tracker (W&B) shows it."""
