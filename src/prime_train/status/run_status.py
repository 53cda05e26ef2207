"""The status of a run in one record: what was read of it, and what follows for people. `status` prints it and
the demo shows it live.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, is_dataclass

from prime_train.estimate.checkpoint_interval import RESTART_S, Pace, advise, mtbf_s
from prime_train.market.step_times import Measurement, measured_in
from prime_train.outputs.results import criteria_values as success
from prime_train.outputs.results.criteria import Criterion, LastValues
from prime_train.outputs.results.numbers import Number, ResultSource
from prime_train.planning.cost_seen import MeasuredKind
from prime_train.runs.figures import RunFigures, figures
from prime_train.runs.forecast import kind_of
from prime_train.runs.open_alerts import OpenAlert, open_alerts
from prime_train.runs.run import Ancestor, Run
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Heartbeat
from prime_train.spec.causes import POLICY, Cause
from prime_train.text.formatting import size, span, usd

SPAN_S_MIN = 1e-3
"""Seconds below which a reported span is none: no save takes so little, and what is divided by it would be
infinite.
"""
OLD_S = 120
"""Minimum age in seconds at which figures are shown with their age. For younger ones the age of the last
heartbeat, which is also shown, is enough.
"""


# ----------------------------------------------------------------------------------------------------------
# saves


@dataclass(frozen=True)
class SaveStatus:
    """How the newest attempt saves, from its last heartbeat. None means not known yet; sizes are those of the
    newest upload.
    """

    durable_age_s: int | None
    """The age of the newest committed checkpoint, which is the training lost if the machine is lost now."""
    durable_after_s: float | None
    interval_s: float | None
    stall_s: float | None
    upload_bytes_per_s: float | None
    size_bytes: int | None
    sent_bytes: int | None
    skipped: int
    disk_full_s: int | None
    loss_s: float | None
    """The expected loss of one preemption, restart included."""
    loss_usd: float | None
    loss_share: float | None
    advice: str | None


def save_status(now: RunFigures, heartbeat: Heartbeat, age_s: int, usd_per_hour: float) -> SaveStatus | None:
    """Return how the newest attempt saves by its last heartbeat, of `age_s` seconds ago; None before the
    first save. Preemptions are expected at the run's own pace, and restarts as long as its own once it has
    restarted.
    """
    saves, spent = heartbeat.saves, now.totals
    if saves is None:
        return None
    pace = Pace(
        stall_s=saves.stall_s or 0.0,
        upload_s=saves.durable_after_s or 0.0,
        mtbf_s=mtbf_s(
            spent.paid_s, sum(1 for attempt in now.run.attempts if attempt.cause is Cause.PREEMPTED)
        ),
        restart_s=(spent.provision_s + spent.restore_s + spent.detection_s) / spent.attempts
        if now.restarts > 0
        else RESTART_S,
        interval_s=_known(saves.interval_s),
    )
    advised = advise(pace, usd_per_hour=usd_per_hour)
    return SaveStatus(
        durable_age_s=saves.durable_age_s + age_s if saves.durable_age_s is not None else None,
        durable_after_s=saves.durable_after_s,
        interval_s=saves.interval_s,
        stall_s=saves.stall_s,
        upload_bytes_per_s=saves.sent_bytes / upload_s
        if saves.sent_bytes and (upload_s := _known(saves.upload_s))
        else None,
        size_bytes=saves.size_bytes,
        sent_bytes=saves.sent_bytes,
        skipped=saves.skipped,
        disk_full_s=heartbeat.disk_full_s,
        loss_s=advised.loss_s if advised else None,
        loss_usd=advised.loss_usd if advised else None,
        loss_share=advised.loss_share if advised else None,
        advice=advised.text if advised else None,
    )


def _known(span_s: float | None) -> float | None:
    return span_s if span_s is not None and span_s >= SPAN_S_MIN else None


def saving_facts(found: SaveStatus) -> list[tuple[str, str]]:
    """Return the facts for people, as pairs of name and text."""
    rows = []
    if found.durable_age_s is not None:
        after = (
            f", durable {span(round(found.durable_after_s))} after it was complete"
            if found.durable_after_s is not None
            else ""
        )
        rows.append(("checkpoint", f"{span(found.durable_age_s)} old{after}"))
    if found.size_bytes is not None:
        rate = f" at {found.upload_bytes_per_s / 1e9:.2f} GB/s" if found.upload_bytes_per_s else ""
        rows.append(
            ("upload", f"{size(found.size_bytes)}, of which {size(found.sent_bytes or 0)} sent{rate}")
        )
    if found.skipped:
        rows.append(
            (
                "skipped",
                f"{found.skipped} checkpoints, because a newer one was complete before they could be "
                "uploaded",
            )
        )
    if found.disk_full_s is not None:
        rows.append(("disk", f"full in {span(found.disk_full_s)} at the current rate"))
    if found.loss_s is not None:
        rows.append(
            ("a preemption", f"costs about {span(round(found.loss_s))}, {usd(found.loss_usd or 0.0)}")
        )
    if found.advice is not None:
        rows.append(("advice", found.advice))
    return rows


# -----------------------------------------------------------------------------------------------------------
# GPUs


@dataclass(frozen=True)
class GpusNow:
    """The state of all GPUs of a machine. None means not reported. `age_s` is the age of the figures; `idle`
    counts GPUs at 0 % that hold no memory.
    """

    count: int
    idle: int
    util_low_pct: float | None
    util_high_pct: float | None
    util_mean_pct: float | None
    memory_bytes: int | None
    """Memory in use on all GPUs together."""
    hottest_c: int | None
    power_w: float | None
    age_s: int
    note: str


def gpus_now(heartbeat: Heartbeat, age_s: int) -> GpusNow | None:
    """Return the state of the GPUs by the last heartbeat, of `age_s` seconds ago; None if no GPU was
    requested.
    """
    reported = heartbeat.gpus
    if reported is None:
        return None
    return GpusNow(
        count=reported.count,
        idle=reported.idle,
        util_low_pct=reported.util_low_pct,
        util_high_pct=reported.util_high_pct,
        util_mean_pct=heartbeat.gpu_util_pct,
        memory_bytes=round(heartbeat.gpu_mem_mib * 2**20) if heartbeat.gpu_mem_mib is not None else None,
        hottest_c=reported.hottest_c,
        power_w=reported.power_w,
        age_s=reported.age_s + age_s,
        note=reported.note,
    )


def gpu_text(found: GpusNow) -> str:
    """Return the state as text, such as "8, 35 to 98 % busy, 67 % on average, 2 idle, 312.5 GiB in use,
    hottest 74 C, 4200 W", followed by the note on anything unusual.
    """
    parts = [str(found.count)] if found.count else []
    if found.util_low_pct is not None and found.util_high_pct is not None:
        low, high = round(found.util_low_pct), round(found.util_high_pct)
        parts.append(f"{high} % busy" if low == high else f"{low} to {high} % busy")
        parts += (
            [f"{found.util_mean_pct:.0f} % on average"]
            if found.util_mean_pct is not None and low != high
            else []
        )
    parts += [f"{found.idle} idle"] if found.idle else []
    parts += [f"{size(found.memory_bytes)} in use"] if found.memory_bytes is not None else []
    parts += [f"hottest {found.hottest_c} C"] if found.hottest_c is not None else []
    parts += [f"{found.power_w:.0f} W"] if found.power_w is not None else []
    parts += [f"{span(found.age_s)} ago"] if found.age_s >= OLD_S else []
    return "; ".join(filter(None, [", ".join(parts), found.note]))


# ---------------------------------------------------------------------------------------------------------
# probes


@dataclass(frozen=True)
class ProbeResult:
    """The measurement of a probe on one kind of machine. `spread_s`: the standard deviation of a step, 0: not
    known. `all_steps`: the number of steps of the config, `hours` and `usd`: what they take on the machine
    that the probe had, without starts, saves and losses; None: the config does not say how many there are.
    """

    config: str
    gpu: str
    gpu_count: int
    step_s: float
    steps: int
    gpu_peak_mib: float | None = None
    gpu_mib: float | None = None
    spread_s: float = 0.0
    all_steps: int | None = None
    hours: float | None = None
    usd: float | None = None

    @property
    def text(self) -> str:
        """Return the measurement in words: 1x H100_80GB: 3.2 s a step ...; there, all 2,000 steps of qwen
        take 1 h 47 min and cost $3.74
        """
        one = Measurement(
            self.step_s,
            self.steps,
            gpu_peak_mib=self.gpu_peak_mib,
            gpu_mib=self.gpu_mib,
            spread_s=self.spread_s,
        )
        kind = MeasuredKind(self.gpu, self.gpu_count, one)
        if self.all_steps is None or self.hours is None or self.usd is None:
            return kind.figures
        whole = (
            f"all {self.all_steps:,} steps of {self.config} take {span(self.hours * 3600)} and "
            "cost "
            f"{usd(self.usd)}"
        )
        return f"{kind.figures}; there, {whole}"


def probe_result(run: Run) -> ProbeResult | None:
    """Return what a probe has measured so far; None if the run is no probe, or has measured too few steps."""
    found = measured_in(run, run.attempts) if run.probe is not None else {}
    if run.probe is None or not found:
        return None
    (gpu, count), one = next(reversed(found.items()))
    steps = run.spec.trainer.steps
    hours = steps * one.seconds / 3600 if steps is not None else None
    offer = next(each.offer for each in reversed(run.attempts) if kind_of(each.offer) == (gpu, count))
    dollars = hours * offer.usd_per_hour if hours is not None else None
    return ProbeResult(
        run.probe.config,
        gpu,
        count,
        one.seconds,
        one.steps,
        one.gpu_peak_mib,
        one.gpu_mib,
        one.spread_s,
        steps,
        hours,
        dollars,
    )


# --------------------------------------------------------------------------------------------------- after
# training


@dataclass(frozen=True)
class StepsAfter:
    """The steps under `after` in a run's config. `trained`: whether training has succeeded, so that they are
    run; `done`: how many are over, the first ones in their order, with those that failed; `failed`: which of
    these failed, and why; `left`: names of the others.
    """

    trained: bool
    done: int
    failed: str
    left: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return it as text, such as "1 of 2 done; left: publish"."""
        count = self.done + len(self.left)
        left = f"left: {', '.join(self.left)}" if self.left else ""
        return "; ".join(filter(None, [f"{self.done} of {count} done", self.failed, left]))


def steps_after(run: Run) -> StepsAfter | None:
    """Return how far the steps after training are; None if the config has none. `run` includes the last
    heartbeat.
    """
    steps = run.spec.after
    if not steps:
        return None
    done = min(run.after_done, len(steps))
    return StepsAfter(
        run.trained_step is not None, done, run.after_failed, tuple(step.name for step in steps[done:])
    )


def result_facts(numbers: Iterable[Number]) -> list[tuple[str, str]]:
    """Return the names of the numbers, and each with where it comes from, such as "0.913 at step 2,000
    (evaluate)".
    """
    return [
        (
            one.name,
            f"{_value(one)}{_at_step(one)} "
            f"({'evaluation' if one.source is ResultSource.EVALUATION else one.by})",
        )
        for one in numbers
    ]


def _value(one: Number) -> str:
    return f"{one.value:.6g}" if one.value is not None else "not finite"


def _at_step(one: Number) -> str:
    return f" at step {one.step:,}" if one.step else ""


# ------------------------------------------------------------------------------------------------------- the
# status


@dataclass(frozen=True)
class RunFacts:
    """What was read of a run, at `now_s` by the store's clock. `last`: the values by which the criteria of
    its config are judged, None before it is over, if there are none, and where the metrics were not read, as
    for lists of runs; `results`: the numbers of evaluations and of steps after training, None where the
    bucket was not read.
    """

    record: RunRecord
    now_s: int
    last: LastValues | None = None
    results: tuple[Number, ...] | None = None


@dataclass(frozen=True)
class Restart:
    """The end of an attempt after which the run continues with another attempt."""

    attempt: int
    cause: str
    detail: str
    at_s: int | None


@dataclass(frozen=True, repr=False)
class RunStatus:
    """The status of a run. Times are whole seconds of the control plane's clock; None means that it has not
    happened or is not known. `figures` is the source of the numbers and their wording. `success`: the
    criteria of the config, judged once the run is over; None before, if there are none, and where the metrics
    were not read, as for lists of runs. `unsaved`: what lies on the machine instead of checkpoints that are
    late; empty: none is. `started_from`: the checkpoint of another run from which this run was started, then
    the one from which that run was, and so on; empty if it was started from step 0. `after`: the steps after
    training; None if the config has none. `results`: the numbers of these steps and of evaluations; None
    where the bucket was not read. `probe`: what it has measured, if it is a probe; else None.
    """

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
        """Return the run in a few words, so that a list of runs can be read. All values are attributes; `row`
        returns them together.
        """
        return f"<RunStatus {self.run}: {self.state}, step {self.progress}, {self.money}>"

    @property
    def measures(self) -> tuple[tuple[str, str], ...]:
        """Return the last reported figures by name, such as `("loss", "0.231")`. One that is not finite is
        shown as such, never as the last finite one.
        """
        lost = f"nan since step {self.not_finite_since:,}" if self.not_finite_since is not None else ""
        named = (("loss", lost or _number(self.loss)), ("reward", _number(self.reward)))
        return tuple((name, text) for name, text in named if text)

    def row(self) -> dict[str, object]:
        """Return all values for JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "figures"}
        values["restarts"] = [asdict(restart) for restart in self.restarts]
        values["alerts"] = [asdict(alert) for alert in self.alerts]
        values["started_from"] = [asdict(one) for one in self.started_from]
        values["results"] = (
            [one.model_dump(mode="json") for one in self.results] if self.results is not None else None
        )
        values["success"] = [asdict(one) for one in self.success] if self.success is not None else None
        return {
            name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
            for name, value in values.items()
        }

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
        named = {
            cause.value.replace("_", " ") if cause is not None else "earlier ones": count
            for cause, count in counts.items()
        }
        return (
            ", ".join(name + (f" x{count}" if count > 1 else "") for name, count in named.items()) or "none"
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return what is known of the run beside its state, as pairs of name and text."""
        now, rows = self.figures, list[tuple[str, str]]()
        if self.desired != "run" and self.ended_s is None:
            rows.append(("asked to", self.desired))
        rows += [("alert", text) for text in self.alert_texts]
        rows += [("started from", now.run.lineage.text)] if now.run.lineage is not None else []
        rows.append(("step", now.steps_text + "".join(f", {name} {text}" for name, text in self.measures)))
        if self.ended_s is None:
            rows.append(("last heartbeat", self.heartbeat + (f" ({self.phase})" if self.phase else "")))
            rows.append(("next check", self.next_check))
        rows += saving_facts(self.saving) if self.saving is not None else []
        rows += [("GPUs", gpu_text(self.gpus))] if self.gpus is not None else []
        rows += [("measured", self.probe.text)] if self.probe is not None else []
        rows += success.facts(self.success or ())
        rows += [("after training", self.after.text)] if self.after is not None else []
        rows += result_facts(self.results or ())
        rows.append(("spent", f"{self.money}, {now.paid} paid"))
        rows += [("training", now.trained)] if now.trained else []
        rows += [("deadline", now.deadline)] if now.deadline else []
        rows.append(("restarts", f"{now.restarts}: {self.causes}" if now.restarts else "none"))
        rows += [("machine", f"{self.offer}, {self.pod}")] if self.pod else []
        rows.append(("commit", self.commit or "none"))
        rows += [("tags", ", ".join(self.tags))] if self.tags else []
        return rows

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


def status_of(known: RunFacts) -> RunStatus:
    """Return the status of one run."""
    record, now_s = known.record, known.now_s
    now = figures(record.run, record.lease, now_s)
    run, lease, spent = now.run, record.lease, now.totals
    attempt = run.current_attempt
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    runs_now = attempt is not None and not run.is_over and lease.open
    age_s = max(0, now_s - lease.heartbeat_s) if lease.heartbeat_s is not None and not run.is_over else None
    live = heartbeat if not run.is_over else None
    usd_per_hour = attempt.offer.usd_per_hour if attempt is not None else 0.0
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
        heartbeat_age_s=age_s,
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
        restarts=tuple(
            Restart(a.number, a.cause.value if a.cause else "", a.detail, a.fenced_s) for a in now.lost
        ),
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
        unsaved=live.unsaved if live is not None else "",
        saving=save_status(now, live, age_s, usd_per_hour)
        if live is not None and age_s is not None
        else None,
        gpus=gpus_now(live, age_s) if live is not None and age_s is not None else None,
        success=known.last.criteria if known.last is not None else None,
        after=steps_after(run),
        results=known.results,
        probe=probe_result(run),
    )


def title_of(cause: str) -> str:
    """Return the title of a cause, or the cause itself if it is not known."""
    return next((policy.title for known, policy in POLICY.items() if known.value == cause), cause)
