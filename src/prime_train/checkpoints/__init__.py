"""Checkpoints on their way: cut into chunks, compressed where that makes them durable sooner, and put together again."""
