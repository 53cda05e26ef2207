"""The demo: a run whose machine is preempted, played in a home of its own, and compared with an uninterrupted training."""
