"""List, verify, restore, export, pin and remove a run's checkpoints in the bucket."""
