"""The criteria under `success` in a config: the values that they are judged by, and the result in words."""

from collections.abc import Iterable

from prime_train.core.registry.trainers import TRAINERS
from prime_train.core.results.criteria import LOSS, REWARD, TOKENS_PER_S, Criterion, CriterionResult, Reported
from prime_train.core.run import Lease
from prime_train.core.spec import RunSpec
from prime_train.trainers import Progress

_TOKENS_NAMES = ("tokens_per_s", "tokens_per_sec", "tokens_per_second", "tokens/s", "train_tokens_per_second")
"""Usual names of the whole run's tokens per second; each kind of trainer may have further ones."""
_WORDS = {"loss_below": "loss below", "reward_above": "reward above", "tokens_per_s_min": "tokens per second at least"}


def last_reported(spec: RunSpec, progress: Iterable[Progress]) -> dict[str, Reported]:
    """Return the last finite value of each figure, in the order in which the trainer reported them."""
    names = (*_TOKENS_NAMES, *TRAINERS[spec.trainer.kind].tokens_per_s)
    last: dict[str, Reported] = {}
    for made in progress:
        tokens = next((made.others[name] for name in names if name in made.others), None)
        for figure, value in ((LOSS, made.loss), (REWARD, made.reward), (TOKENS_PER_S, tokens)):
            if value is not None:
                last[figure] = Reported(value, made.step)
    return last


def in_last_heartbeat(lease: Lease) -> dict[str, Reported]:
    """Return the last loss and reward in the heartbeats. These do not contain the tokens per second."""
    heartbeat = lease.heartbeat
    named = ((LOSS, heartbeat.loss), (REWARD, heartbeat.reward)) if heartbeat is not None else ()
    return {name: Reported(value, heartbeat.step) for name, value in named if heartbeat is not None and value is not None}


def title(one: Criterion) -> str:
    """Return the criterion in words, such as "loss below 3.2"."""
    return f"{_WORDS[one.name]} {one.wanted:.6g}"


def result(one: Criterion) -> str:
    """Return how it was judged, such as "met: 2.1 at step 500"."""
    if one.outcome is CriterionResult.UNKNOWN:
        return f"{one.outcome}: {one.why}"
    return f"{one.outcome}: {one.seen:.6g} at step {one.step:,}"


def facts(criteria: Iterable[Criterion]) -> list[tuple[str, str]]:
    """Return criterion and result as pairs of texts."""
    return [(title(one), result(one)) for one in criteria]
