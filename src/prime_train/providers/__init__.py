"""Machines to rent or to use: the port, one folder for each provider, the installation of the agent, SSH."""
