"""Offers ranked by the dollars to the end of a run: what was seen of machines, quotes, whether to move."""
