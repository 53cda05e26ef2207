"""Handling of texts by people and machines: neutralising, measuring, parsing and formatting."""
