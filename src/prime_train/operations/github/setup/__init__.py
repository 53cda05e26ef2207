"""Set a repository on GitHub up for training: what is there, what is missing, and the steps in between."""
