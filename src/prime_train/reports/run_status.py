"""The status of a run in one record, which `status` prints and the demo shows live."""

from dataclasses import asdict, dataclass, fields, is_dataclass

from prime_train.core.causes import POLICY
from prime_train.core.results.criteria import Criterion
from prime_train.core.results.numbers import Number
from prime_train.core.run import Ancestor
from prime_train.core.run_figures import RunFigures, figures
from prime_train.core.text.formatting import span
from prime_train.ports import RunRecord
from prime_train.reports.after import StepsAfter, steps_after
from prime_train.reports.durability import SaveStatus, save_status, unsaved_of
from prime_train.reports.gpus import GpusNow, gpus_now
from prime_train.reports.open_alerts import OpenAlert, open_alerts
from prime_train.reports.probe import ProbeResult, probe_result


@dataclass(frozen=True)
class Restart:
    """The end of an attempt after which the run continues with another attempt."""

    attempt: int
    cause: str
    detail: str
    at_s: int | None


@dataclass(frozen=True, repr=False)
class RunStatus:
    """The status of a run. Times are whole seconds of the control plane's clock; None means that it has not happened or is not known.
    `figures` is the source of the numbers and their wording. `success`: the criteria of the config, judged once the run is over; None
    before, if there are none, and where the metrics were not read, as for lists of runs. `unsaved`: what lies on the
    machine instead of checkpoints that are late; empty: none is. `started_from`: the checkpoint of another run from
    which this run was started, then the one from which that run was, and so on; empty if it was started from step 0. `after`: the
    steps after training; None if the config has none. `results`: the numbers of these steps and of evaluations; None where the
    bucket was not read. `probe`: what it has measured, if it is a probe; else None."""

    figures: RunFigures
    run: str
    name: str
    state: str
    desired: str
    why: str
    attempt: int
    phase: str | None
    step: int
    steps: int | None
    loss: float | None
    reward: float | None
    heartbeat_age_s: int | None
    best_step: int
    durable_step: int
    spent_usd: float
    traffic_usd: float
    budget_usd: float
    paid_s: int
    budget_hours: float | None
    training_s: int
    deadline: str | None
    attempts: int
    restarts: tuple[Restart, ...]
    next_check_s: int | None
    next_check_in_s: int | None
    created_s: int
    ended_s: int | None
    offer: str | None
    variant: str
    pod: str | None
    commit: str
    tags: tuple[str, ...]
    archived: bool
    alerts: tuple[OpenAlert, ...]
    started_from: tuple[Ancestor, ...]
    unsaved: str
    saving: SaveStatus | None
    gpus: GpusNow | None
    success: tuple[Criterion, ...] | None = None
    after: StepsAfter | None = None
    results: tuple[Number, ...] | None = None
    probe: ProbeResult | None = None
    not_finite_since: int | None = None

    def __repr__(self) -> str:
        """Return the run in a few words, so that a list of runs can be read. All values are attributes; `row` returns them together."""
        return f"<RunStatus {self.run}: {self.state}, step {self.progress}, {self.money}>"

    @property
    def measures(self) -> tuple[tuple[str, str], ...]:
        """Return the last reported figures by name, such as `("loss", "0.231")`. One that is not finite is shown as such, never as the last
        finite one."""
        lost = f"nan since step {self.not_finite_since:,}" if self.not_finite_since is not None else ""
        named = (("loss", lost or _number(self.loss)), ("reward", _number(self.reward)))
        return tuple((name, text) for name, text in named if text)

    def row(self) -> dict[str, object]:
        """Return all values for JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "figures"}
        values["restarts"] = [asdict(restart) for restart in self.restarts]
        values["alerts"] = [asdict(alert) for alert in self.alerts]
        values["started_from"] = [asdict(one) for one in self.started_from]
        values["results"] = [one.model_dump(mode="json") for one in self.results] if self.results is not None else None
        values["success"] = [asdict(one) for one in self.success] if self.success is not None else None
        return {name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value for name, value in values.items()}

    @property
    def progress(self) -> str:
        return self.figures.progress

    @property
    def money(self) -> str:
        return self.figures.money

    @property
    def heartbeat(self) -> str:
        return f"{span(self.heartbeat_age_s)} ago" if self.heartbeat_age_s is not None else "-"

    @property
    def causes(self) -> str:
        """Return the causes of the restarts, such as "preempted x2, stalled"."""
        counts = self.figures.restart_causes
        named = {cause.value.replace("_", " ") if cause is not None else "earlier ones": count for cause, count in counts.items()}
        return ", ".join(name + (f" x{count}" if count > 1 else "") for name, count in named.items()) or "none"

    @property
    def alert_texts(self) -> list[str]:
        """Return the open alerts, such as "3 min ago: the machine is silent: no heartbeat for 90 s"."""
        return [f"{span(max(0, self.figures.now_s - alert.at_s))} ago: {alert.text}" for alert in self.alerts]

    @property
    def next_check(self) -> str:
        if self.next_check_in_s is None:
            return "-"
        return f"in {span(self.next_check_in_s)}" if self.next_check_in_s > 0 else "now"


def _number(value: float | None) -> str:
    return f"{value:.4g}" if value is not None else ""


def status_of(record: RunRecord, now_s: int) -> RunStatus:
    """Return the status of one run at `now_s`."""
    now = figures(record.run, record.lease, now_s)
    run, lease, spent = now.run, record.lease, now.totals
    attempt = run.current_attempt
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    runs_now = attempt is not None and not run.is_over and lease.open
    return RunStatus(
        figures=now,
        run=run.run_id,
        name=run.spec.name,
        state=run.state.value,
        desired=run.desired.value,
        why=run.why,
        attempt=run.attempt,
        phase=heartbeat.phase.value if heartbeat is not None and lease.open else None,
        step=now.step,
        steps=run.spec.trainer.steps,
        loss=heartbeat.loss if heartbeat is not None else None,
        reward=heartbeat.reward if heartbeat is not None else None,
        not_finite_since=heartbeat.not_finite_since if heartbeat is not None else None,
        heartbeat_age_s=max(0, now_s - lease.heartbeat_s) if lease.heartbeat_s is not None and not run.is_over else None,
        best_step=now.best_step,
        durable_step=now.durable_step,
        spent_usd=round(spent.usd, 6),
        traffic_usd=round(spent.traffic_usd, 6),
        budget_usd=run.spec.budget.usd,
        paid_s=spent.paid_s,
        budget_hours=run.spec.budget.hours,
        training_s=spent.useful_s + spent.recomputed_s,
        deadline=run.spec.budget.deadline,
        attempts=now.attempts,
        restarts=tuple(Restart(a.number, a.cause.value if a.cause else "", a.detail, a.fenced_s) for a in now.lost),
        next_check_s=run.next_check_s,
        next_check_in_s=run.next_check_s - now_s if run.next_check_s is not None else None,
        created_s=run.created_s,
        ended_s=run.ended_s,
        offer=attempt.offer.offer_id if attempt is not None and runs_now else None,
        variant=attempt.variant if attempt is not None and runs_now else "",
        pod=attempt.pod_id if attempt is not None and runs_now else None,
        commit=run.commit,
        tags=run.spec.tags,
        archived=run.archived,
        alerts=open_alerts(run),
        started_from=run.lineage.ancestors if run.lineage is not None else (),
        unsaved=unsaved_of(record),
        saving=save_status(record, now_s),
        gpus=gpus_now(record, now_s),
        after=steps_after(run),
        probe=probe_result(run),
    )


def title_of(cause: str) -> str:
    """Return the title of a cause, or the cause itself if it is not known."""
    return next((policy.title for known, policy in POLICY.items() if known.value == cause), cause)
