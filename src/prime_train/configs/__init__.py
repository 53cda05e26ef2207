"""Reads configs with their positions and versions, compares two configs, and writes templates for new ones."""
