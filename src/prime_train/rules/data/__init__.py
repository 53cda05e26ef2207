"""Facts that age, as tables: a new version is a new file beside the old one."""
