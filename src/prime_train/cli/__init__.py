"""The command line: one verb a file, each a thin shell over the parts it names."""
