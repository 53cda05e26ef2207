"""The report on the search for a machine."""
