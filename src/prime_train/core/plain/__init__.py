"""A spec and a heartbeat that are surely right, read without the library that says what is wrong with one: it takes long to load."""
