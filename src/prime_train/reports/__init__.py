"""Renders values as text and pictures for every medium: messages, comments, tables, charts and pages."""
