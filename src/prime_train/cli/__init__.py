"""The command line: one file for each command, each a thin layer over the operations."""
