"""Container images: which one a machine starts from, and what the images that are built here contain."""
