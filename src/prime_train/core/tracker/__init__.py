"""The state of a run in its tracker (W&B)."""
