"""Checkpoints: manifest, chunks, codec, restoring, retention, and what commands do with them."""
