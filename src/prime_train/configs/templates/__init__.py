"""The configs that `init` writes, for prime-rl and for a user's own script."""
