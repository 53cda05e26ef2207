"""The faults of a history, drawn from its seed alone, so that the same seed gives the same history."""

import random
from dataclasses import dataclass
from enum import StrEnum

HOUR_S = 3600
DAY_S = 86_400
LAST_S = 12.0
"""Latest start of the last fault in seconds; a run without faults takes about as long."""
FAULTS_MAX = 4


class Kind(StrEnum):
    """A fault. Faults in `REPEATABLE` may occur several times in one history."""

    KILL_MACHINE = "kill the machine"
    KILL_AGENT = "kill the agent"
    KILL_TRAINER = "kill the trainer"
    KILL_SERVE = "kill the control plane"
    KILL_WATCHER = "kill the watcher"
    FREEZE_SERVE = "freeze the control plane"
    FREEZE_AGENT = "freeze the agent"
    STEP_CLOCK = "set the control plane's clock"
    SKEWED_WATCHER = "start a watcher with a wrong clock"
    SKEWED_SWEEP = "let a watcher with a wrong clock look once"
    UNMOUNT_BUCKET = "unmount the bucket"
    ROLL_BACK_STORE = "restore the store from an older copy"
    EXHAUST_CONNECTIONS = "hold a thousand idle connections"


REPEATABLE = frozenset({Kind.KILL_MACHINE, Kind.KILL_AGENT, Kind.KILL_TRAINER, Kind.KILL_SERVE, Kind.STEP_CLOCK, Kind.SKEWED_SWEEP})
CLOCKS_ONLY = frozenset({Kind.STEP_CLOCK, Kind.SKEWED_WATCHER, Kind.SKEWED_SWEEP})
"""Faults that must cost a run nothing: no machine, and no second of its ledger."""


@dataclass(frozen=True)
class Fault:
    """A fault in a history. `at_s`: seconds after the first durable checkpoint. `size`: seconds that it lasts, or that a clock is ahead."""

    at_s: float
    kind: Kind
    size: float = 0.0

    def __str__(self) -> str:
        return f"{self.at_s:5.1f} s: {self.kind.value}" + (f" ({self.size:+,.0f} s)" if self.size else "")


@dataclass(frozen=True)
class Plan:
    """One history: its faults in order, whether webhook and watcher are two processes, and the kind of trainer."""

    seed: int
    faults: tuple[Fault, ...]
    two_processes: bool
    trainer_deletes_folder: bool

    @property
    def is_harmless(self) -> bool:
        """Return whether the run must not be affected at all."""
        return all(fault.kind in CLOCKS_ONLY for fault in self.faults)

    def __str__(self) -> str:
        planes = "webhook and watcher apart" if self.two_processes else "one control plane"
        trainer = ", the trainer deletes its folder at the end" if self.trainer_deletes_folder else ""
        return "\n".join([f"seed {self.seed}: {planes}{trainer}", *(f"  {fault}" for fault in self.faults)])


def plan(seed: int) -> Plan:
    """Return the history of that seed."""
    draw = random.Random(f"chaos-{seed}")
    # One in four is of clocks alone: there, nothing at all may happen to the run.
    kinds = sorted(CLOCKS_ONLY if draw.random() < 0.25 else frozenset(Kind))
    chosen: list[Kind] = []
    for _ in range(draw.randint(1, FAULTS_MAX)):
        chosen.append(draw.choice([kind for kind in kinds if kind in REPEATABLE or kind not in chosen]))
    faults = sorted((Fault(round(draw.uniform(0, LAST_S), 1), kind, _size(kind, draw)) for kind in chosen), key=lambda fault: fault.at_s)
    return Plan(seed, tuple(faults), draw.random() < 0.4, draw.random() < 0.2)


def _size(kind: Kind, draw: random.Random) -> float:
    if kind in CLOCKS_ONLY:
        return round(draw.choice([-1, 1]) * draw.choice([draw.uniform(30, 300), draw.uniform(300, HOUR_S), draw.uniform(HOUR_S, DAY_S)]))
    if kind in (Kind.FREEZE_SERVE, Kind.FREEZE_AGENT, Kind.UNMOUNT_BUCKET, Kind.EXHAUST_CONNECTIONS):
        return round(draw.uniform(1, 5), 1)
    return 0.0
