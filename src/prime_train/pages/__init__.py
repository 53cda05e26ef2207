"""A run's page, charts and the dashboard."""
