"""Reputation: the machines, hosts, data centres and images that failed for any run of this account, and until
when they come last.

It is computed from the attempts of all runs in the store. Only causes in `WEIGHTS` count, for which a machine
may be to blame. Each failure fades: it counts half after `HALF_LIFE_H`. What has gathered as much as its
`Limit` is excluded until it has faded below that.

A run's own failures must not exclude the market. A failure counts in full only if the same config went well
on another machine: it made a step there, and did not end in the same way. Until then, all machines on which
it failed in that way share one failure. The same holds for its image, which has a reputation of its own: with
a provider, it is excluded once it has failed to start on several machines there, and never trained.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Run
from prime_train.spec.causes import POLICY, Cause
from prime_train.text.formatting import span

HALF_LIFE_H = 72.0
FORGOTTEN_H = 8 * HALF_LIFE_H
"""Hours after which a failure is not looked at any more."""
WEIGHTS: Mapping[Cause, float] = {
    Cause.GPU_HARDWARE: 2.0,
    Cause.BOOT_FAILED: 1.0,
    Cause.BOOT_TIMEOUT: 1.0,
    Cause.PREFLIGHT_FAILED: 1.0,
    Cause.ALL_REDUCE_FAILED: 1.0,
    Cause.SLOW_DISK: 1.0,
    Cause.MACHINE_LOST: 0.5,
    Cause.SILENT: 0.5,
    Cause.CUDA_ERROR: 0.5,
    Cause.COLLECTIVE_TIMEOUT: 0.5,
    Cause.SLOW_DOWNLOAD: 0.5,
    Cause.BOOT_LOST: 0.25,
    Cause.PREEMPTED: 0.25,
}
"""How much a failure of each cause counts. A trainer's own errors, refusals and what depends on an image's
settings do not count.
"""
OF_MACHINES_ALONE = frozenset({Cause.PREEMPTED})
"""The causes that say nothing about a host or a data centre: losses of spot machines are part of what a
machine is expected to cost.
"""
IMAGE_CAUSES = frozenset(
    {Cause.BOOT_FAILED, Cause.BOOT_TIMEOUT, Cause.PREFLIGHT_FAILED, Cause.ALL_REDUCE_FAILED}
)
"""The causes for which an image may be to blame: nothing of the run was started yet."""
MENDED = 0.5
"""Factor on the failures of a machine for each later attempt that made a step on it."""
STEPPED = 0.25
"""What each attempt that made a step takes off the failures of its host and its data centre; it fades as they
do.
"""
WHY_CAUSES_MAX = 2


class Axis(StrEnum):
    """What can have a reputation."""

    MACHINE = "machine"
    HOST = "host"
    DATA_CENTER = "data centre"
    IMAGE = "image"


@dataclass(frozen=True)
class Limit:
    """The faded weight of failures from which on something is excluded, and the number of different machines
    that must have failed.
    """

    weight: float
    machines: int


LIMITS: Mapping[Axis, Limit] = {
    Axis.MACHINE: Limit(0.5, 1),
    Axis.HOST: Limit(1.5, 2),
    Axis.DATA_CENTER: Limit(3.0, 3),
    Axis.IMAGE: Limit(1.5, 2),
}


@dataclass(frozen=True)
class FailureDomain:
    """Something with a reputation, by the name that its provider gives it."""

    axis: Axis
    provider: str
    name: str

    @property
    def text(self) -> str:
        return f"{self.axis} {self.name} of {self.provider}"


@dataclass(frozen=True)
class Exclusion:
    """What comes last, why, and until when. `causes`: the causes with their number, the most frequent first;
    `last_s`: the last failure; `as_of_s`: when this was computed.
    """

    place: FailureDomain
    causes: tuple[tuple[Cause, int], ...]
    last_s: int
    until_s: int
    as_of_s: int

    @property
    def why(self) -> str:
        """Return the reason in words: machine unfit (2 times), last 3 h ago; until 2026-11-26 04:00 UTC"""
        named = [
            f"{POLICY[cause].title}{f' ({count} times)' if count > 1 else ''}"
            for cause, count in self.causes[:WHY_CAUSES_MAX]
        ]
        more = sum(count for _, count in self.causes[WHY_CAUSES_MAX:])
        named += [f"{more} more"] if more else []
        return (
            f"{', '.join(named)}, last {span(max(0, self.as_of_s - self.last_s))} ago; "
            "until "
            f"{moment(self.until_s)}"
        )

    @property
    def text(self) -> str:
        return f"{self.place.text}: {self.why}"


@dataclass(frozen=True)
class Reputation:
    """Everything that is excluded at one moment."""

    exclusions: Mapping[FailureDomain, Exclusion] = field(default_factory=dict)

    def against(self, offer: Offer, image: str | None = None) -> Exclusion | None:
        """Return why the offer comes last: of several exclusions the one that lasts longest; None if there is
        none. `image`: the one that the run starts its machines from.
        """
        found = [
            self.exclusions[place]
            for place in (*places_of(offer), *_image_at(offer, image))
            if place in self.exclusions
        ]
        return max(found, key=lambda exclusion: exclusion.until_s, default=None)

    def against_each(self, offers: Iterable[Offer], image: str | None = None) -> Mapping[Offer, Exclusion]:
        """Return the offers that come last, with the reason for each."""
        if not self.exclusions:
            return {}
        found = {offer: self.against(offer, image) for offer in offers}
        return {offer: exclusion for offer, exclusion in found.items() if exclusion is not None}


def moment(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def places_of(offer: Offer) -> list[FailureDomain]:
    """Return what the offer's machine is known by, as far as its provider tells."""
    named = ((Axis.MACHINE, offer.machine), (Axis.HOST, offer.host), (Axis.DATA_CENTER, offer.data_center))
    return [FailureDomain(axis, offer.provider, name) for axis, name in named if name]


def reputation(runs: Iterable[Run], now_s: int) -> Reputation:
    """Return what is excluded at `now_s` according to the attempts of these runs."""
    turns = [_Turn(run, attempt) for run in runs for attempt in run.attempts if attempt.pod_id is not None]
    failures = [
        turn for turn in turns if turn.weight and turn.is_named and now_s - turn.at_s < FORGOTTEN_H * 3600
    ]
    if not failures:
        return Reputation()
    known = _Known(turns, failures)
    tallies: dict[FailureDomain, _Tally] = {}
    for turn in failures:
        faded = turn.weight * _faded(turn.at_s, now_s)
        shared = faded / known.suspects(turn)
        for place in places_of(turn.attempt.offer):
            if place.axis is Axis.MACHINE:
                tallies.setdefault(place, _Tally()).add(turn, shared * MENDED ** known.steps_after(turn))
            elif turn.attempt.cause not in OF_MACHINES_ALONE:
                tallies.setdefault(place, _Tally()).add(turn, shared)
        if turn.attempt.cause in IMAGE_CAUSES:
            for place in _image_at(turn.attempt.offer, turn.image):
                if place not in known.working_images:
                    tallies.setdefault(place, _Tally()).add(turn, faded)
    for turn in turns:
        if turn.attempt.first_step_s is not None:
            for place in places_of(turn.attempt.offer):
                if place.axis is not Axis.MACHINE and place in tallies:
                    tallies[place].weight -= STEPPED * _faded(turn.attempt.first_step_s, now_s)
    found = {place: tally.exclusion(place, now_s) for place, tally in tallies.items()}
    return Reputation({place: exclusion for place, exclusion in found.items() if exclusion is not None})


def _faded(at_s: int, now_s: int) -> float:
    return float(0.5 ** (max(0, now_s - at_s) / (HALF_LIFE_H * 3600)))


def _image_at(offer: Offer, image: str | None) -> list[FailureDomain]:
    return [FailureDomain(Axis.IMAGE, offer.provider, image)] if image else []


_Machine = tuple[str, str]


@dataclass(frozen=True)
class _Turn:
    """An attempt for which a machine was rented."""

    run: Run
    attempt: Attempt

    @property
    def weight(self) -> float:
        is_over = self.attempt.cause is not None and self.attempt.fenced_s is not None
        return WEIGHTS.get(self.attempt.cause, 0.0) if is_over and self.attempt.cause is not None else 0.0

    @property
    def at_s(self) -> int:
        return self.attempt.fenced_s or self.attempt.launched_s

    @property
    def is_named(self) -> bool:
        """Return whether anything is known by name that could be to blame."""
        offer = self.attempt.offer
        return bool(offer.machine or offer.host or offer.data_center or self.image)

    @property
    def machine(self) -> _Machine:
        """Return what distinguishes its machine from others: one of an unknown machine counts as another one
        each time.
        """
        return (self.attempt.offer.provider, self.attempt.offer.machine or f"pod {self.attempt.pod_id}")

    @property
    def config(self) -> str:
        return self.run.config

    @property
    def image(self) -> str | None:
        return self.run.spec.hardware.image

    @property
    def suspects(self) -> tuple[tuple[str, str], ...]:
        """Return what may be to blame instead of the machine: the config, and the image."""
        return (("config", self.config), *((("image", self.image),) if self.image else ()))


class _Known:
    """What the attempts tell about each other."""

    def __init__(self, turns: Iterable[_Turn], failures: Iterable[_Turn]) -> None:
        self._trained: dict[tuple[str, str], set[tuple[_Machine, Cause | None]]] = {}
        self._failed: dict[tuple[tuple[str, str], Cause | None], set[_Machine]] = {}
        self._stepped_s: dict[_Machine, list[int]] = {}
        self.working_images: set[FailureDomain] = set()
        for turn in (one for one in turns if one.attempt.first_step_s is not None):
            self._stepped_s.setdefault(turn.machine, []).append(turn.attempt.first_step_s or 0)
            self.working_images.update(_image_at(turn.attempt.offer, turn.image))
            for suspect in turn.suspects:
                self._trained.setdefault(suspect, set()).add((turn.machine, turn.attempt.cause))
        for turn in failures:
            for suspect in turn.suspects:
                self._failed.setdefault((suspect, turn.attempt.cause), set()).add(turn.machine)

    def suspects(self, turn: _Turn) -> int:
        """Return the number of machines that share the failure: 1 if config and image went well on another
        machine, because then the machine is to blame; otherwise all on which they failed in this way.
        """
        return max(self._suspects(suspect, turn) for suspect in turn.suspects)

    def _suspects(self, suspect: tuple[str, str], turn: _Turn) -> int:
        cause = turn.attempt.cause
        if any(
            machine != turn.machine and ended is not cause
            for machine, ended in self._trained.get(suspect, ())
        ):
            return 1
        return len(self._failed[suspect, cause])

    def steps_after(self, failed: _Turn) -> int:
        """Return the number of attempts that made a step on the same machine after the failure."""
        return sum(at_s > failed.at_s for at_s in self._stepped_s.get(failed.machine, ()))


@dataclass
class _Tally:
    """The failures of one place."""

    weight: float = 0.0
    machines: set[_Machine] = field(default_factory=set)
    causes: dict[Cause, int] = field(default_factory=dict)
    last_s: int = 0

    def add(self, turn: _Turn, weight: float) -> None:
        assert turn.attempt.cause is not None
        self.weight += weight
        self.machines.add(turn.machine)
        self.causes[turn.attempt.cause] = self.causes.get(turn.attempt.cause, 0) + 1
        self.last_s = max(self.last_s, turn.at_s)

    def exclusion(self, place: FailureDomain, now_s: int) -> Exclusion | None:
        limit = LIMITS[place.axis]
        if self.weight <= limit.weight or len(self.machines) < limit.machines:
            return None
        until_s = now_s + math.ceil(HALF_LIFE_H * 3600 * math.log2(self.weight / limit.weight))
        causes = sorted(self.causes.items(), key=lambda item: (-item[1], item[0]))
        return Exclusion(place, tuple(causes), self.last_s, until_s, now_s)
