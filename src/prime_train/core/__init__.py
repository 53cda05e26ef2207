"""What is true of runs, pods and checkpoints, and what follows from it: no clock, file, network, environment or log."""
