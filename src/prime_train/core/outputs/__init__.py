"""What a run leaves besides checkpoints, as it lies in the bucket: the manifest of an attempt's outputs, and rows of metrics."""
