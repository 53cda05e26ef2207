"""What `init` writes: configs for prime-rl and for a script of the user."""
