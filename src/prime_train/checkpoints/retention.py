"""The rules for which checkpoints of a run stay in the bucket, and why.

Several processes may prune at once, each with an outdated list of checkpoints: a replaced agent that has not
noticed, a person at a terminal. No lock is needed, because a list only ever grows at its new end. A newer
checkpoint can displace an older one from the newest and from the best, and never brings one back; so a
checkpoint that expires in an old list also expires in a current one. And the newest complete checkpoint of
all lists together is the newest in every list that contains it, so no process deletes it. This requires that
a metric is written with its checkpoint, once: a metric that became known later could make an older checkpoint
the best after it was deleted. Likewise, a trainer names as its best the checkpoint that it saves or the one
that it named before, and a pin must be written before a list is read that is to respect it.

A checkpoint that may be useless displaces none that is not: of those whose figures were not finite, and those
that an attempt could not resume from, only the newest of all stays by its age, and it takes no place of a
good one. The newest one that is proven, because a trainer resumed from it and made a step, stays until a
newer one is; and the one that the trainer itself calls the best, until it names another. A mark that a list
does not have yet only keeps more: an older one stays proven.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Self

from prime_train.spec.spec import CheckpointSpec


@dataclass(frozen=True)
class Kept:
    """A checkpoint in the bucket. `complete`: every blob is in the bucket; `metric`: its value of `best_by`,
    None if it was not measured.
    """

    step: int
    attempt: int
    key: str
    complete: bool = True
    metric: float | None = None
    proven: bool = False
    """Whether a trainer has resumed from it and made a step."""
    is_doubtful: bool = False
    """Whether its figures were not finite, or an attempt could not resume from it."""
    best_step: int | None = None
    """The step of the best checkpoint so far by the trainer's own account in this one; None: it says nothing
    of it.
    """

    @property
    def age(self) -> tuple[int, int]:
        """Return a key that sorts the oldest first; for the same step, the later attempt is the newer."""
        return self.step, self.attempt


@dataclass(frozen=True)
class RetentionPolicy:
    """The checkpoints to keep: the newest `keep`, the newest proven one, every multiple of `every_steps`, and
    the `best` ones by `best_by`.
    """

    keep: int
    every_steps: int | None = None
    best: int = 0
    best_by: Literal["loss", "reward"] = "reward"

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise ValueError(f"keep is {self.keep}; at least one checkpoint is always kept")
        if self.every_steps is not None and self.every_steps < 1:
            raise ValueError(f"every_steps is {self.every_steps}; use 1 or more, or None")
        if self.best < 0:
            raise ValueError(f"best is {self.best}; use 0 or more")

    @classmethod
    def of(cls, spec: CheckpointSpec) -> Self:
        return cls(
            keep=spec.keep, every_steps=spec.keep_every_steps, best=spec.keep_best, best_by=spec.best_by
        )


def keeps_newest_only(policy: RetentionPolicy, step: int) -> bool:
    """Return whether a checkpoint of `step` would be deleted as soon as a newer one is committed, whatever
    its metric.
    """
    return (
        policy.keep == 1
        and not policy.best
        and (policy.every_steps is None or step % policy.every_steps != 0)
    )


def expired(
    checkpoints: Collection[Kept],
    policy: RetentionPolicy,
    *,
    committed_step: int,
    pinned: Collection[str] = (),
) -> tuple[Kept, ...]:
    """Return the checkpoints that may be deleted, oldest first: all without a reason in `why_kept`.
    Idempotent.
    """
    kept = why_kept(checkpoints, policy, committed_step=committed_step, pinned=pinned)
    return tuple(sorted((c for c in checkpoints if c.key not in kept), key=lambda c: c.age))


def why_kept(
    checkpoints: Collection[Kept],
    policy: RetentionPolicy,
    *,
    committed_step: int,
    pinned: Collection[str] = (),
) -> Mapping[str, str]:
    """Return the reason why each checkpoint stays, by key, as text for people: "newest 3, best 2 by reward".

    Nothing from `committed_step` on may be deleted: for steps above it no commit is known, and if several
    checkpoints have that step, it is unknown which one was committed. `pinned` are keys. An incomplete
    checkpoint never counts as newest, multiple or best; it stays only until it is older than all complete
    ones that are kept.
    """
    pins = frozenset(pinned)
    settled = sorted(
        (c for c in checkpoints if c.complete and c.step <= committed_step), key=lambda c: c.age, reverse=True
    )
    reasons: dict[str, list[str]] = {}
    for why, chosen in _rules(settled, policy):
        for checkpoint in chosen:
            reasons.setdefault(checkpoint.key, []).append(why)
    for checkpoint in checkpoints:
        if checkpoint.key in pins:
            reasons.setdefault(checkpoint.key, []).append("pinned")
        if checkpoint.step > committed_step:
            reasons.setdefault(checkpoint.key, []).append("not committed")
    oldest = min((c.age for c in _good(settled)[: policy.keep] or settled[:1]), default=None)
    for checkpoint in checkpoints:
        if checkpoint.key not in reasons and (why_waits := _why_waits(checkpoint, committed_step, oldest)):
            reasons[checkpoint.key] = [why_waits]
    return {key: ", ".join(texts) for key, texts in reasons.items()}


def _rules(newest_first: list[Kept], policy: RetentionPolicy) -> Iterator[tuple[str, Iterable[Kept]]]:
    """Yield each rule of the policy with the complete and committed checkpoints that it keeps."""
    good = _good(newest_first)
    yield f"newest {policy.keep}", good[: policy.keep]
    yield "newest of all", [c for c in newest_first[:1] if c.is_doubtful]
    yield "newest proven", [c for c in good if c.proven][:1]
    best_step = next((c.best_step for c in newest_first if c.best_step is not None), None)
    yield "the trainer's best", [c for c in newest_first if c.step == best_step][:1]
    if policy.every_steps is not None:
        yield f"every {policy.every_steps}", [c for c in good if c.step % policy.every_steps == 0]
    if policy.best:
        yield f"best {policy.best} by {policy.best_by}", _best_first(good, policy)[: policy.best]


def _good(newest_first: list[Kept]) -> list[Kept]:
    return [c for c in newest_first if not c.is_doubtful]


def _best_first(newest_first: list[Kept], policy: RetentionPolicy) -> list[Kept]:
    """Return the checkpoints with a finite metric, best first; sorting is stable, so of equal ones the newer
    comes first.
    """
    sign = -1 if policy.best_by == "reward" else 1
    measured = [
        (sign * c.metric, c) for c in newest_first if c.metric is not None and math.isfinite(c.metric)
    ]
    return [c for _, c in sorted(measured, key=lambda row: row[0])]


def _why_waits(checkpoint: Kept, committed_step: int, oldest: tuple[int, int] | None) -> str | None:
    """Return why a checkpoint that no rule keeps cannot be deleted yet, or None; `oldest`: age of the oldest
    complete and committed one that is kept.
    """
    if checkpoint.step == committed_step:
        return "at the committed step"
    if not checkpoint.complete and (oldest is None or checkpoint.age > oldest):
        return (
            "incomplete, newer than one that is kept"
            if oldest
            else "incomplete, but no older one is complete"
        )
    return None
