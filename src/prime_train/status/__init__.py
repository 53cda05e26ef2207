"""How a run is, and why: status, diagnosis, profile."""
