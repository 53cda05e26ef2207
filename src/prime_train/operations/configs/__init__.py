"""What can be asked of a config: to write a new one, to check, review and explain it, and to keep its versions."""
