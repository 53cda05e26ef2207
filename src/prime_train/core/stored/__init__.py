"""What is stored, and in which form."""
