"""The results of a run: numbers by name, from its training, its evaluations and the steps after it, and how they are judged."""
