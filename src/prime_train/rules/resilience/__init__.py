"""Rules about what a run loses when its machine is preempted."""
