"""What is known of the answers of a provider's API, where it is known from, and how a real answer differs from it."""
