"""The phases before training: preflight, set-up, verification, smoke test and restore."""
