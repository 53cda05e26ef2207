"""Installs the agent over SSH on a machine that was just rented, and starts it there."""
