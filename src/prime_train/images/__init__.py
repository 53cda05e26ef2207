"""Images for machines that have the agent and the environment installed."""
