"""A fake of Weights & Biases on loopback: as much of its GraphQL and of its stream of files as the real SDK needs, to write and to read.

What is answered was taken from what the SDK asks and reads; in tests/adapters/test_tracker_wandb.py a real process trains against it. As at
W&B, a run is `running` until its process says how it ended; one that was killed goes on being called so, and only its heartbeat grows old.
"""

from tests.fakes.wandb.runs import KEY, FakeRun
from tests.fakes.wandb.server import FakeWandb

__all__ = ["KEY", "FakeRun", "FakeWandb"]
