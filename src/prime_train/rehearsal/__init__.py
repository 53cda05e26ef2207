"""Rehearsal of a script before money is spent: it is watched, killed and resumed, and its config is written."""
