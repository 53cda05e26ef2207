"""Weights & Biases as an outside sign of life, asked through its own SDK, or without it where it is not installed.

What W&B says is late (20 to 30 minutes have been seen) and its own `crashed` comes minutes after the last heartbeat, so a heartbeat is only
ever taken as a moment in the past at which the run was alive. An old one says nothing of a run whose agent sends heartbeats.

A run's id here is its id there. `Run.mark_preempting` can only be called by the process that writes the run, which is the trainer's.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from prime_train.adapters.tracker_wandb.asking import Wandb
from prime_train.adapters.tracker_wandb.tracker import WandbTracker
from prime_train.core.tracker.seen_run import RunSeen

KEY = "WANDB_API_KEY"
URL = "WANDB_BASE_URL"
ENTITY = "WANDB_ENTITY"

__all__ = ["ENTITY", "KEY", "URL", "RunSeen", "Wandb", "WandbTracker", "tracker_from", "wandb_from"]


def tracker_from(environment: Mapping[str, str]) -> WandbTracker | None:
    """None without a key. Nothing is imported or asked before the first look."""
    wandb = wandb_from(environment)
    return WandbTracker(wandb) if wandb is not None else None


def wandb_from(environment: Mapping[str, str]) -> Wandb | None:
    """For the account whose key the environment has; None where it has none."""
    key, url, entity = (environment.get(name, "").strip() for name in (KEY, URL, ENTITY))
    if not key:
        return None
    if _has_sdk():
        from prime_train.adapters.tracker_wandb.sdk import SdkWandb

        return SdkWandb(key, url=url, entity=entity)
    from prime_train.adapters.tracker_wandb.plain import PlainWandb

    return PlainWandb(key, url=url, entity=entity)


def _has_sdk() -> bool:
    """A folder of that name is none: W&B leaves one wherever something was trained."""
    spec = find_spec("wandb")
    return spec is not None and spec.origin is not None
