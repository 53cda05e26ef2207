"""The steps under `after` in a config: run when training has succeeded, and as evaluations while it goes on."""
