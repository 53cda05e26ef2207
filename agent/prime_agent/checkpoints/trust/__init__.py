"""Whether what was uploaded is a whole checkpoint, and stays one in the bucket."""
