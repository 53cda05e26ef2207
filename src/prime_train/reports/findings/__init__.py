"""Writes findings about configs in formats that other tools read."""
