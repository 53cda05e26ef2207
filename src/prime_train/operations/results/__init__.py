"""Results of runs: the criteria of their configs, and the numbers of steps after training and of evaluations."""
