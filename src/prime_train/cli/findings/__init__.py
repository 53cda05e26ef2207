"""Findings about configs as the command line prints them, and the verbs that only check."""
