"""What the next attempt resumes from: which checkpoints are trusted, which one is chosen, and what a divergence changes."""
