"""Formats of what a run stores in the bucket besides checkpoints: the manifest of an attempt's outputs, and rows of metrics."""
