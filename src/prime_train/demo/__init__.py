"""The demo: a run that loses its machine, on this machine."""
