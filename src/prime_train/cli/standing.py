"""How a run stands, in one record: what `status` prints and what the demo shows live."""

from collections import Counter
from dataclasses import asdict, dataclass

from prime_train.cli.gpus import GpusNow, gpus_now
from prime_train.cli.saving import Saving, saving
from prime_train.core import ledger
from prime_train.core.amounts import span, usd
from prime_train.core.causes import POLICY, Cause
from prime_train.core.run import Run
from prime_train.core.wire import Beat
from prime_train.ports import Held


@dataclass(frozen=True)
class Restart:
    """An attempt that another one had to follow, or that ended the run badly."""

    epoch: int
    cause: str
    detail: str
    at_s: int | None


@dataclass(frozen=True)
class Standing:
    """Times are whole seconds of the control plane's clock; None: it has not happened, or is not known."""

    run: str
    name: str
    state: str
    want: str
    why: str
    epoch: int
    phase: str | None
    step: int
    steps: int | None
    loss: float | None
    reward: float | None
    beat_age_s: int | None
    durable_step: int
    spent_usd: float
    budget_usd: float
    paid_s: int
    budget_hours: float | None
    attempts: int
    restarts: tuple[Restart, ...]
    next_check_s: int | None
    next_check_in_s: int | None
    created_s: int
    ended_s: int | None
    offer: str | None
    pod: str | None
    commit: str
    saving: Saving | None
    gpus: GpusNow | None

    def row(self) -> dict[str, object]:
        """All of it, for JSON."""
        return asdict(self)

    @property
    def progress(self) -> str:
        return f"{self.step:,}/{self.steps:,}" if self.steps else f"{self.step:,}"

    @property
    def money(self) -> str:
        return f"{usd(self.spent_usd)} of {usd(self.budget_usd)}"

    @property
    def beat(self) -> str:
        return f"{span(self.beat_age_s)} ago" if self.beat_age_s is not None else "-"

    @property
    def causes(self) -> str:
        """preempted x2, stalled"""
        counts = Counter(restart.cause for restart in self.restarts)
        return ", ".join(cause.replace("_", " ") + (f" x{count}" if count > 1 else "") for cause, count in counts.items()) or "none"

    @property
    def next_check(self) -> str:
        if self.next_check_in_s is None:
            return "-"
        return f"in {span(self.next_check_in_s)}" if self.next_check_in_s > 0 else "now"


def standing(held: Held, now_s: int) -> Standing:
    """The record of one run at `now_s`."""
    run, lease = held.run, held.lease
    attempt = run.attempt
    beat = lease.beat if lease.epoch == run.epoch else None
    spent = ledger.totals(run, now_s)
    runs_now = attempt is not None and not run.is_over and lease.open
    return Standing(
        run=run.run_id,
        name=run.spec.name,
        state=run.state.value,
        want=run.want.value,
        why=run.why,
        epoch=run.epoch,
        phase=beat.phase.value if beat is not None and lease.open else None,
        step=_step(run, beat),
        steps=run.spec.trainer.steps,
        loss=beat.loss if beat is not None else None,
        reward=beat.reward if beat is not None else None,
        beat_age_s=max(0, now_s - lease.beat_s) if lease.beat_s is not None and not run.is_over else None,
        durable_step=max(run.durable_step, lease.committed_step if lease.epoch == run.epoch else 0),
        spent_usd=round(spent.usd, 6),
        budget_usd=run.spec.budget.usd,
        paid_s=spent.paid_s,
        budget_hours=run.spec.budget.hours,
        attempts=spent.attempts,
        restarts=_restarts(run),
        next_check_s=run.next_check_s,
        next_check_in_s=run.next_check_s - now_s if run.next_check_s is not None else None,
        created_s=run.created_s,
        ended_s=run.ended_s,
        offer=attempt.offer.offer_id if attempt is not None and runs_now else None,
        pod=attempt.pod_id if attempt is not None and runs_now else None,
        commit=run.commit,
        saving=saving(held, now_s),
        gpus=gpus_now(held, now_s),
    )


def _step(run: Run, beat: Beat | None) -> int:
    """The newest attempt's step; before its first beat, where it starts from."""
    attempt = run.attempt
    return max(beat.step if beat is not None else 0, attempt.last_step if attempt is not None else 0)


def _restarts(run: Run) -> tuple[Restart, ...]:
    """Attempts that came to a bad end: not the one that finished, nor the last one where the user had it stopped."""
    ended = [(a, a.cause) for a in run.attempts if a.fenced_s is not None and not (a.cause is Cause.DRAINED and a is run.attempt)]
    return tuple(Restart(a.epoch, cause.value, a.detail, a.fenced_s) for a, cause in ended if cause not in (None, Cause.FINISHED))


def title_of(cause: str) -> str:
    """A cause in words."""
    return next((policy.title for known, policy in POLICY.items() if known.value == cause), cause)
