"""Build a container image with the agent and the trainer's environment."""
