"""Weights & Biases as an independent sign of life.

W&B's data is late (delays of 20 to 30 minutes have been observed) and its state `crashed` comes minutes after the last heartbeat, so its
heartbeat only proves that the run was alive at that moment. An old one proves nothing about a run whose agent sends heartbeats.

A run has the same id here and in W&B. `Run.mark_preempting` can only be called by the process that writes the run, which is the trainer.
"""
