"""What a run leaves besides checkpoints: logs, metrics, results, files."""
