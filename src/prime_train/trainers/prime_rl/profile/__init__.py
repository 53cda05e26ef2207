"""The profile of a prime-rl run: what the time of its steps is spent on."""

STEPS = 50
"""Default number of steps to examine. Only the last steps are used, because a run changes."""
