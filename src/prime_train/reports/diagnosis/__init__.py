"""What happened to a run, concluded from everything that is known of it."""
