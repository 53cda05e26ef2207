"""Alerts: the port, Slack, Discord and other URLs, the log."""
