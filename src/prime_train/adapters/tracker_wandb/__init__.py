"""Weights & Biases as an independent sign of life.

W&B's data is late (delays of 20 to 30 minutes have been observed) and its state `crashed` comes minutes after the last heartbeat, so its
heartbeat only proves that the run was alive at that moment. An old one proves nothing about a run whose agent sends heartbeats.

A run has the same id here and in W&B. `Run.mark_preempting` can only be called by the process that writes the run, which is the trainer.
"""

from collections.abc import Mapping

from prime_train.adapters.tracker_wandb.client import WandbClient
from prime_train.adapters.tracker_wandb.tracker import WandbTracker
from prime_train.core.tracker.tracked_run import TrackerRun

KEY = "WANDB_API_KEY"
URL = "WANDB_BASE_URL"
ENTITY = "WANDB_ENTITY"

__all__ = ["ENTITY", "KEY", "URL", "TrackerRun", "WandbClient", "WandbTracker", "tracker_from", "wandb_from"]


def tracker_from(environment: Mapping[str, str]) -> WandbTracker | None:
    """Return the tracker, or None without an API key. Nothing is imported or requested before the first query."""
    wandb = wandb_from(environment)
    return WandbTracker(wandb) if wandb is not None else None


def wandb_from(environment: Mapping[str, str]) -> WandbClient | None:
    """Return a client for the account whose key is in the environment, or None if there is no key."""
    key, url, entity = (environment.get(name, "").strip() for name in (KEY, URL, ENTITY))
    return WandbClient(key, url=url, entity=entity) if key else None
