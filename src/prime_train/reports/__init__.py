"""Renders values as text and charts for every medium: messages, comments, tables and pages."""
