"""All figures of a run for people, computed from one reading of the run. Every display takes them from here,
so that no two of them contradict each other.

The stored run gets an attempt's steps only when the attempt ends; until then its last heartbeat and commit,
in the lease, are newer. `run.heard` merges the two, and everything else is computed from the result.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from prime_train.runs import budget, ledger
from prime_train.runs.run import Attempt, Lease, Run, Totals, with_heartbeat
from prime_train.spec.causes import Cause
from prime_train.text.formatting import percents, span, spans, usd, usds

PARTS = ("provision", "restore", "useful", "recomputed", "after", "detection", "teardown")
"""The parts of the ledger, in the order in which they are paid."""


@dataclass(frozen=True)
class LedgerPart:
    """A part of the paid time, in numbers and as texts; the rounded texts of all parts add up to the text of
    the total.
    """

    name: str
    seconds: int
    usd: float
    time: str
    money: str
    share: str


@dataclass(frozen=True)
class AttemptCost:
    """The cost of one attempt; with `current_attempt` None, of everything without a row of its own: earlier
    attempts and other machines.
    """

    current_attempt: Attempt | None
    paid_s: int
    usd: float
    time: str
    money: str


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run at `now_s`. `run` includes the last heartbeat of its newest attempt."""

    run: Run
    now_s: int

    # --------------------------------------------------------------------------------------------------------
    # steps

    @property
    def step(self) -> int:
        """Return the newest step of the newest attempt; before its first step, the one it resumed from or
        will resume from.
        """
        start = self.run.resume.step if self.run.resume is not None else 0
        return self.run.current_attempt.last_step if self.run.current_attempt is not None else start

    @property
    def durable_step(self) -> int:
        """Return the step of the newest checkpoint in the bucket."""
        return self.run.durable_step

    @property
    def best_step(self) -> int:
        """Return the highest step that any attempt has reached."""
        return max(self.run.best_step, self.step, self.durable_step)

    @property
    def progress(self) -> str:
        """Return the step as text, with the last step if it is known: 120/400"""
        steps = self.run.spec.trainer.steps
        return f"{self.step:,}/{steps:,}" if steps else f"{self.step:,}"

    @property
    def steps_text(self) -> str:
        """Return the step and the newest durable step as text, and the highest step reached if the current
        one is behind it.
        """
        behind = f" (step {self.best_step:,} was reached before)" if self.best_step > self.step else ""
        return (
            f"{self.progress}{behind}, newest "
            "checkpoint: "
            f"{f'step {self.durable_step:,}' if self.durable_step else 'none yet'}"
        )

    # --------------------------------------------------------------------------------------------------------
    # restarts

    @property
    def attempts(self) -> int:
        return self.totals.attempts

    @cached_property
    def lost(self) -> tuple[Attempt, ...]:
        """Return the attempts that were or will be followed by another attempt. The attempt with which the
        run ended is not one of them.
        """
        return tuple(
            a
            for a in self.run.attempts
            if a.fenced_s is not None and not (self.run.is_over and a is self.run.current_attempt)
        )

    @property
    def restarts(self) -> int:
        return len(self.lost) + self.run.folded.attempts

    @property
    def restart_causes(self) -> Counter[Cause | None]:
        """Return the number of restarts for each cause; the key None counts earlier restarts, whose causes
        are not kept.
        """
        causes = Counter[Cause | None](attempt.cause for attempt in self.lost)
        causes[None] += self.run.folded.attempts
        return +causes

    # --------------------------------------------------------------------------------------------------------
    # money

    @cached_property
    def totals(self) -> Totals:
        return ledger.totals(self.run, self.now_s)

    @property
    def money(self) -> str:
        return f"{usd(self.totals.usd)} of {usd(self.run.spec.budget.usd)}"

    @property
    def trained(self) -> str:
        """Return the hours of training as text if the budget limits them, such as 1 h 3 min of 2 h; else
        empty.
        """
        hours = self.run.spec.budget.hours
        return (
            f"{span(budget.training_s(self.run, self.now_s))} of {span(hours * 3600)}"
            if hours is not None
            else ""
        )

    @property
    def deadline(self) -> str:
        """Return the deadline as text, such as 2026-12-01T18:00+01:00, in 3 d 4 h; empty if there is none."""
        end_s = budget.deadline_s(self.run)
        left = (
            f", in {span(end_s - self.now_s)}"
            if end_s is not None and end_s > self.now_s and not self.run.is_over
            else ""
        )
        return f"{self.run.spec.budget.deadline}{left}" if end_s is not None else ""

    @property
    def paid(self) -> str:
        return span(self.totals.paid_s)

    @cached_property
    def parts(self) -> tuple[LedgerPart, ...]:
        """Return the ledger, part by part, over all attempts and other machines. An attempt's cost is spread
        evenly over its seconds. Steps after training are left out if none took any time.
        """
        rows = ledger.rows(self.run, self.now_s)
        seconds = [sum(getattr(row, f"{part}_s") for row in rows) for part in PARTS]
        dollars = [
            sum(row.usd * getattr(row, f"{part}_s") / row.paid_s for row in rows if row.paid_s)
            for part in PARTS
        ]
        texts = zip(
            spans(seconds, self.totals.paid_s), usds(dollars, self.totals.usd), percents(seconds), strict=True
        )
        every = [
            LedgerPart(*part, *words)
            for part, words in zip(zip(PARTS, seconds, dollars, strict=True), texts, strict=True)
        ]
        return tuple(part for part in every if part.seconds or part.name != "after")

    @property
    def useful_share(self) -> str:
        return next(part.share for part in self.parts if part.name == "useful")

    def costs(self, shown_max: int | None = None) -> tuple[AttemptCost, ...]:
        """Return a row for each of the newest `shown_max` attempts (None: all that are listed), and a last
        row for all other costs.
        """
        listed = self.run.attempts[-shown_max:] if shown_max is not None else self.run.attempts
        each = [(attempt, ledger.attempt_totals(attempt, self.now_s)) for attempt in listed]
        paid = [(attempt, cost.paid_s, cost.usd) for attempt, cost in each]
        rest_s = self.totals.paid_s - sum(seconds for _, seconds, _ in paid)
        rest_usd = self.totals.usd - sum(dollars for _, _, dollars in paid)
        rest: list[tuple[Attempt | None, int, float]] = (
            [(None, rest_s, rest_usd)] if rest_s or len(listed) < self.attempts else []
        )
        rows: list[tuple[Attempt | None, int, float]] = [*paid, *rest]
        times = spans([seconds for _, seconds, _ in rows], self.totals.paid_s)
        money = usds([dollars for _, _, dollars in rows], self.totals.usd)
        return tuple(
            AttemptCost(*row, time, dollars) for row, time, dollars in zip(rows, times, money, strict=True)
        )

    def others(self, shown_max: int | None = None) -> str:
        """Return the label of the last row of `costs`: attempts without a row of their own, and machines of
        no attempt.
        """
        earlier = self.attempts - len(
            self.run.attempts[-shown_max:] if shown_max is not None else self.run.attempts
        )
        return f"… and {earlier} earlier ones" if earlier else "other machines"


def price_text(attempt: Attempt) -> str:
    """Return the price of the attempt's machine, with what its traffic has cost so far where that is paid
    for: $0.50/h and $3.20 of traffic
    """
    traffic_usd = ledger.traffic_usd(attempt)
    return f"{usd(attempt.offer.usd_per_hour)}/h" + (
        f" and {usd(traffic_usd)} of traffic" if traffic_usd else ""
    )


def figures(run: Run, lease: Lease | None, now_s: int) -> RunFigures:
    """Return the figures of a run. `lease` None: nothing newer than the stored run is known, as for a run
    that is over.
    """
    return RunFigures(with_heartbeat(run, lease) if lease is not None else run, now_s)
