"""Tables of facts that age; a new version is a new file next to the old one."""
