"""Help of the command line: commands in groups, an example of each, the fields of `--json`, and the page that lists them all."""
