"""The command line: the table of commands, and their help."""
