"""What is asked before a run: which machine, how many dollars and hours, how much memory, which model."""
