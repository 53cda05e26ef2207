"""Reading configs: files, their positions, versions, what differs between them, and templates for new ones."""
