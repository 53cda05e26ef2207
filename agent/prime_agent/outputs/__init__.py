"""What an attempt leaves besides checkpoints: the files that the config names, logs and metrics, uploaded while the trainer runs."""
