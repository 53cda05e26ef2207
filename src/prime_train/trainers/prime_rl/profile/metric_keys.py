"""The time-related keys of prime-rl's metrics file, and how to read their values from a line.

Keys have changed between versions; all known ones are listed, the newest first.
"""

import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum

from prime_train.trainers.checkpoint_folders import STEP_MAX

LINE_CHARS_MAX = 2**20


class StepPart(StrEnum):
    """Parts of a trainer's step, in order."""

    WAIT = "wait_for_batch"
    LOAD = "load_data"
    TRAIN = "forward_backward"
    """Forward and backward pass, and the optimizer's step."""
    BROADCAST = "broadcast_weights"
    SAVE = "save_ckpt"
    OTHER = "other"
    """The remainder of the step, which no metric accounts for."""


REPORTED = tuple(part for part in StepPart if part is not StepPart.OTHER)
NEEDED = (StepPart.WAIT, StepPart.TRAIN)


def key_of(part: StepPart) -> str:
    """Return the key of a part's seconds in the metrics file."""
    return f"time/{part.value}"


HELD_BACK = ("time/wait_for_policy", "time/wait_for_ckpt")
ROLLOUTS = ("progress/rollouts", "progress/samples")
DROPPED = "off_policy/dropped"
TURNS = ("train/agg/all/num_turns/mean", "num_turns/all/mean")
TIMING = re.compile(
    r"(?:train/agg/all/(?:(?P<agent>[^/]+)/)??timing|timing/all)/(?P<part>[a-z/]+)/(?P<stat>mean|max)"
)
PROMPTS = "train/agg/all/num_input_tokens/max"
"""The most tokens of a rollout that the model did not write: its prompt, and what users and tools say in
later turns.
"""
ERRORS = re.compile(r"train/agg/all/(?:[^/]+/)?has_error/mean")
LOADS: Mapping[str, tuple[str, ...]] = {
    "running": ("inference/agg/num_requests_running/sum", "inference/agg/running_requests"),
    "waiting": ("inference/agg/num_requests_waiting/sum", "inference/agg/waiting_requests"),
    "running_each": ("inference/agg/num_requests_running/mean",),
    "cache": ("inference/agg/kv_cache_usage_perc/mean", "inference/agg/kv_cache_usage_mean"),
    "preemptions": ("inference/agg/num_preemptions_total:rate/sum", "inference/agg/num_preemptions:rate/sum"),
    "inflight": ("dispatcher/inflight/train", "dispatcher/inflight_train"),
    "allowed": ("concurrency/max_inflight",),
}
REWARD = "reward/all/mean"
_HEAD = {"step", "time", "producer"}
_OURS = {
    *_HEAD,
    "time/step",
    "time/pack",
    "perf/mfu",
    DROPPED,
    PROMPTS,
    REWARD,
    *HELD_BACK,
    *ROLLOUTS,
    *TURNS,
}
_OURS |= {*(key_of(part) for part in REPORTED), *(key for keys in LOADS.values() for key in keys)}


def figures_of(line: str) -> Mapping[str, object] | None:
    """Return the JSON object in a line; None if the line is not a JSON object or exceeds `LINE_CHARS_MAX`
    characters.
    """
    text = line.strip()
    if not text.startswith("{") or len(text) > LINE_CHARS_MAX:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def thinned(line: str) -> str:
    """Return the line reduced to the keys that a profile reads; "" if none is left."""
    figures = figures_of(line)
    if figures is None:
        return ""
    left = {key: value for key, value in figures.items() if _is_ours(key)}
    return json.dumps(left) if left.keys() - _HEAD else ""


def number(value: object) -> float | None:
    """Return a finite float for a number that is neither a boolean nor a string; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def step_of(figures: Mapping[str, object]) -> int | None:
    """Return the step of a row; None unless it is a whole number from 0 to `STEP_MAX`."""
    found = number(figures.get("step"))
    return int(found) if found is not None and found == int(found) and 0 <= found <= STEP_MAX else None


def amount(figures: Mapping[str, object], *keys: str) -> float | None:
    """Return the value of the first key that holds a number of at least 0, or None."""
    found = (number(figures.get(key)) for key in keys)
    return next((value for value in found if value is not None and value >= 0), None)


def _is_ours(key: str) -> bool:
    return key in _OURS or TIMING.fullmatch(key) is not None or ERRORS.fullmatch(key) is not None
