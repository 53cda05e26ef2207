"""The models that people train: their dimensions, and what is known to work with them."""
