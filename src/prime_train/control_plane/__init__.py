"""Everything that decides about runs and talks to agents, and the wiring that builds it from an environment."""
