"""Config files with what they name, and their versions."""
