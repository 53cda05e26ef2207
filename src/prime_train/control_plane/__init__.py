"""The control plane: decisions about runs, communication with agents, and the wiring that builds both from an environment."""
