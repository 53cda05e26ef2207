"""Diagnoses what happened to a run from everything known about it."""
