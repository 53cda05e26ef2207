"""The faults of a history, drawn from its seed alone, so that the same seed gives the same history."""

import random
from dataclasses import dataclass
from enum import StrEnum

HOUR_S = 3600
DAY_S = 86_400
SUSPENDED_S = (8, 150)
"""Range of the seconds of a suspension: the longest are longer than any limit of health, and a machine that
seems lost comes back.
"""
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
    SUSPEND_SERVE = "suspend the control plane for long"
    SUSPEND_AGENT = "suspend the agent for long"
    SUSPEND_TRAINER = "suspend the trainer for long"
    ANSWER_IN_PLACE = "answer in the control plane's place"
    FILL_DISK = "fill the disk of the control plane, the bucket and the machines"
    ROT_BIT = "flip a bit in the bucket"
    UPGRADE = "begin anew with rows of an older version"


REPEATABLE = frozenset(
    {
        Kind.KILL_MACHINE,
        Kind.KILL_AGENT,
        Kind.KILL_TRAINER,
        Kind.KILL_SERVE,
        Kind.STEP_CLOCK,
        Kind.SKEWED_SWEEP,
    }
)
ONCE_ALONE = {Kind.FILL_DISK: Kind.UNMOUNT_BUCKET, Kind.UNMOUNT_BUCKET: Kind.FILL_DISK}
"""Faults that exclude another one: what is mounted cannot be renamed."""
CLOCKS_ONLY = frozenset({Kind.STEP_CLOCK, Kind.SKEWED_WATCHER, Kind.SKEWED_SWEEP})
"""Faults that must cost a run nothing: no machine, and no second of its ledger."""
LASTING = frozenset(
    {
        Kind.FREEZE_SERVE,
        Kind.FREEZE_AGENT,
        Kind.UNMOUNT_BUCKET,
        Kind.EXHAUST_CONNECTIONS,
        Kind.ANSWER_IN_PLACE,
        Kind.FILL_DISK,
    }
)
"""Faults that last for seconds."""
HARMLESS = CLOCKS_ONLY | {Kind.ANSWER_IN_PLACE}
"""Faults that must not cost a run its machine."""
SUSPENSIONS = frozenset({Kind.SUSPEND_SERVE, Kind.SUSPEND_AGENT, Kind.SUSPEND_TRAINER})


class Trainer(StrEnum):
    """What the run's command does. All but PLAIN break the contract."""

    PLAIN = "trains, saves and ends"
    DELETES_FOLDER = "deletes its folder at the end"
    CRASHES_AT_END = "crashes after its last step"
    CRASHES_AT_STEP = "fails at the same step each time"
    NEVER_COMPLETE = "never completes a checkpoint"


TRAINERS = (*[Trainer.PLAIN] * 6, *Trainer)
BUDGETS_USD = (None, None, None, None, None, 0.004, 0.008)
"""Dollars of a run at about 0.0002 a second: those of a minute or less, or None for more than it can
spend.
"""


@dataclass(frozen=True)
class Fault:
    """A fault in a history. `at_s`: seconds after the first durable checkpoint. `size`: seconds that it
    lasts, or that a clock is ahead.
    """

    at_s: float
    kind: Kind
    size: float = 0.0

    def __str__(self) -> str:
        return f"{self.at_s:5.1f} s: {self.kind.value}" + (f" ({self.size:+,.0f} s)" if self.size else "")


@dataclass(frozen=True)
class Plan:
    """One history: its faults in order, whether webhook and watcher are two processes, and the kind of
    trainer.
    """

    seed: int
    faults: tuple[Fault, ...]
    two_processes: bool
    trainer: Trainer
    budget_usd: float | None = None

    @property
    def is_harmless(self) -> bool:
        """Return whether the run must not be affected at all."""
        plain = self.trainer is Trainer.PLAIN and self.budget_usd is None
        return plain and all(fault.kind in HARMLESS for fault in self.faults)

    def has(self, *kinds: Kind) -> bool:
        """Return whether one of these faults comes in it."""
        return any(fault.kind in kinds for fault in self.faults)

    def __str__(self) -> str:
        planes = "webhook and watcher apart" if self.two_processes else "one control plane"
        trainer = f", the trainer {self.trainer.value}" if self.trainer is not Trainer.PLAIN else ""
        budget = f", a budget of ${self.budget_usd}" if self.budget_usd is not None else ""
        return "\n".join(
            [f"seed {self.seed}: {planes}{trainer}{budget}", *(f"  {fault}" for fault in self.faults)]
        )


def plan(seed: int) -> Plan:
    """Return the history of that seed."""
    draw = random.Random(f"chaos-{seed}")
    # One in four is of clocks alone: there, nothing at all may happen to the run.
    kinds = sorted(CLOCKS_ONLY if draw.random() < 0.25 else frozenset(Kind))
    chosen: list[Kind] = []
    for _ in range(draw.randint(1, FAULTS_MAX)):
        may_come = [kind for kind in kinds if kind in REPEATABLE or kind not in chosen]
        chosen.append(draw.choice([kind for kind in may_come if ONCE_ALONE.get(kind) not in chosen]))
    faults = sorted(
        (Fault(round(draw.uniform(0, LAST_S), 1), kind, _size(kind, draw)) for kind in chosen),
        key=lambda fault: fault.at_s,
    )
    return Plan(seed, tuple(faults), draw.random() < 0.4, draw.choice(TRAINERS), draw.choice(BUDGETS_USD))


def _size(kind: Kind, draw: random.Random) -> float:
    if kind in CLOCKS_ONLY:
        return round(
            draw.choice([-1, 1])
            * draw.choice([draw.uniform(30, 300), draw.uniform(300, HOUR_S), draw.uniform(HOUR_S, DAY_S)])
        )
    if kind in SUSPENSIONS:
        return round(draw.uniform(*SUSPENDED_S), 1)
    if kind in LASTING:
        return round(draw.uniform(1, 5), 1)
    return 0.0
