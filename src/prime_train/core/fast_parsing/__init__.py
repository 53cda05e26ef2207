"""Reading of valid specs and heartbeats without pydantic, which takes long to load."""
