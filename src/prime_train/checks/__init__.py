"""The rules that configs are checked by, the engine that applies them, and `validate`."""
