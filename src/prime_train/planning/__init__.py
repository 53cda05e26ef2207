"""Before a run: which machine, what it costs, how much memory it needs, and the first config."""
