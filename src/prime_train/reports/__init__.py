"""Values as words and pictures, for every medium: messages, comments, tables, charts and pages."""
