"""What a run leaves besides checkpoints: the files that its config names, its logs and its metrics, as they are in the bucket."""
