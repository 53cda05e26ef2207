"""A run's page: its state, the conclusions about it, its chart, its figures, its attempts and costs, its log
and its history.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from prime_train.outputs.results import criteria_values as success
from prime_train.outputs.results.criteria import Criterion
from prime_train.outputs.results.numbers import Number
from prime_train.pages import sections
from prime_train.pages.charts.curves import Curve, curve_svg
from prime_train.pages.charts.metric_curves import heading, unreported
from prime_train.pages.charts.timeline import NARROW, WIDTH, timeline_svg
from prime_train.pages.charts.timeline_data import Point
from prime_train.pages.document import Live, document
from prime_train.pages.markup import cards, none, pill, row, section_html, shown, table
from prime_train.runs.figures import RunFigures
from prime_train.runs.run import HistoryEvent
from prime_train.runs.store import RunRecord
from prime_train.status.diagnosis.diagnosis_model import Diagnosis
from prime_train.status.run_status import (
    RunFacts,
    RunStatus,
    StepsAfter,
    gpu_text,
    result_facts,
    saving_facts,
    status_of,
)
from prime_train.text.formatting import size, span, usd
from prime_train.text.invocations import worded

EVENTS_MAX = 200
NO_CURVES = (
    "There are no metrics: the trainer has written none in the file that its progress settings name, or the "
    "file cannot be reached."
)


@dataclass(frozen=True)
class LogEnd:
    """The end of a log. `name`: where the log is stored; empty if there is none."""

    name: str
    text: str


@dataclass(frozen=True)
class CheckpointSummary:
    """A manifest in the bucket. `size_bytes`: the size of all its files; `saved_s`: the second at which it
    was written; `mark`: what else is known of it, such as that it is proven, in words.
    """

    step: int
    attempt: int
    files: int
    size_bytes: int
    saved_s: int
    mark: str = ""


@dataclass(frozen=True)
class RunSources:
    """What is known of a run from sources other than the store. `checkpoints`: the newest ones, newest first.
    `curves_from`: the source of the figures. `criteria`: those of the config, judged; None if it names none
    or the run is not over. `results`: the numbers of evaluations and steps after training. `evidence`: keys
    in the bucket of files from ended attempts. `notes`: the sources that could not be read, and why.
    """

    checkpoints: tuple[CheckpointSummary, ...] = ()
    curves: tuple[Curve, ...] = ()
    curves_from: str = ""
    criteria: tuple[Criterion, ...] | None = None
    results: tuple[Number, ...] = ()
    log: LogEnd = LogEnd("", "")
    diagnoses: tuple[Diagnosis, ...] = ()
    evidence: tuple[str, ...] = ()
    tracker_url: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunPage:
    """The data of a run's page, as of `now_s`. `sources` is None while it is still being read."""

    record: RunRecord
    now_s: int
    history: tuple[HistoryEvent, ...]
    sources: RunSources | None = None

    @property
    def seen(self) -> RunSources:
        return self.sources if self.sources is not None else RunSources()


def run_page_html(page: RunPage, live: Live | None = None) -> str:
    """Return the complete page. `live`: how a served page stays up to date; None for a file."""
    one = status_of(RunFacts(page.record, page.now_s))
    way = "<nav><a href='../'>all runs</a></nav>" if live is not None else ""
    body = way + "".join(_parts(page, one))
    return document(f"{one.run}: {one.state}, step {one.figures.progress}", body, live)


def _parts(page: RunPage, one: RunStatus) -> Iterator[str]:
    now = one.figures
    yield section_html("head", "", _head(one))
    yield section_html("diagnosis", "Diagnosis", _diagnoses(page))
    yield section_html("steps", "Steps over time", _steps(page, now))
    yield section_html("curves", heading(), _curves(page))
    if one.after is not None:
        yield section_html("results", "After training", _results(page, one.after))
    yield section_html(
        "attempts",
        "Attempts",
        sections.attempts(now) if now.run.attempts else none("No machine has been rented yet."),
    )
    yield section_html(
        "ledger",
        "Time and money",
        sections.ledger(now) if now.totals.paid_s else none("Nothing has been paid yet."),
    )
    yield section_html("checkpoints", "Checkpoints", _checkpoints(page, now))
    yield section_html("log", "Log", _log(page))
    yield section_html("history", "History", _history(page))
    yield section_html("facts", "Facts", sections.facts(now.run, dict(_facts(page, one))))
    yield section_html("foot", "", f"<footer>{shown(_foot(page))}</footer>")


def _head(one: RunStatus) -> str:
    now = one.figures
    state = now.run.state
    why = one.why or (f"asked to {one.desired}" if one.desired != "run" and one.ended_s is None else "")
    doing = "; ".join(filter(None, [why, f"phase: {one.phase}" if one.phase else ""]))
    alerts = "".join(f"<p class=alert>Alert, {shown(text)}</p>" for text in one.alert_texts)
    return (
        f"<h1>{shown(one.run)}{pill(state)}</h1><p "
        f"class=why>{shown(doing)}</p>{alerts}{cards(list(_cards(one)))}"
    )


def _cards(one: RunStatus) -> Iterator[tuple[str, str]]:
    now = one.figures
    yield f"{now.step:,}", f"step{f' of {one.steps:,}' if one.steps else ''}"
    yield (f"{now.durable_step:,}" if now.durable_step else "none"), "durable step"
    yield usd(now.totals.usd), f"spent of {usd(one.budget_usd)}"
    yield now.paid, f"paid, {now.useful_share} of it useful" if now.totals.paid_s else "paid"
    yield str(now.attempts), f"attempt{'' if now.attempts == 1 else 's'}, restarts: {one.causes}"
    if one.ended_s is None:
        yield (
            (span(one.heartbeat_age_s) if one.heartbeat_age_s is not None else "none"),
            "since the last heartbeat",
        )
    for name, text in one.measures:
        yield text, name


def _pending(page: RunPage, nothing: str) -> str:
    return none(nothing if page.sources is not None else "The data is being fetched.")


def _diagnoses(page: RunPage) -> str:
    if not page.seen.diagnoses:
        return _pending(page, "There is no diagnosis.") + _notes(page)
    return "".join(
        _diagnosis(one, first=place == 0) for place, one in enumerate(page.seen.diagnoses)
    ) + _notes(page)


def _diagnosis(one: Diagnosis, *, first: bool) -> str:
    advice = f"<p>{shown(worded(one.advice))}</p>" if one.advice else ""
    return (
        f"<div class='found{' first' if first else ''}'><h3>{shown(one.title)}</h3><p "
        f"class=soft>{shown(one.because)}</p>{advice}</div>"
    )


def _notes(page: RunPage) -> str:
    return "".join(none(f"Not checked: {note}") for note in page.seen.notes)


def _steps(page: RunPage, now: RunFigures) -> str:
    if not any(attempt.first_step_s is not None for attempt in now.run.attempts):
        return none("No step has been completed yet.")
    # The checkpoint that the run was started from was saved by another run, maybe long before.
    commits = [
        Point(float(one.saved_s), one.step, one.attempt) for one in page.seen.checkpoints if one.attempt
    ]
    points = [*_seen(now), *commits]
    broad, narrow = (
        timeline_svg(
            now.run, page.history, points, commits, titled=False, ledger=False, now_s=page.now_s, width=width
        )
        for width in (WIDTH, NARROW)
    )
    return f"<div class=broad>{broad}</div><div class=narrow>{narrow}</div>"


def _seen(now: RunFigures) -> Iterator[Point]:
    """Yield the last step of each attempt, as a point at its last sign of life."""
    for attempt in now.run.attempts:
        at_s = attempt.last_sign_s if attempt.fenced_s is not None else now.now_s
        if attempt.first_step_s is not None and at_s is not None:
            yield Point(float(at_s), attempt.last_step, attempt.number)


def _curves(page: RunPage) -> str:
    if not page.seen.curves:
        return _pending(page, NO_CURVES) + _criteria(page)
    drawn = "".join(
        f"<figure><figcaption>{shown(curve.name)}</figcaption>{curve_svg(curve)}</figure>"
        for curve in page.seen.curves
    )
    absent = unreported(page.seen.curves)
    source = f"Read from {page.seen.curves_from}." + (
        f" Not reported: {', '.join(absent)}." if absent else ""
    )
    return f"<div class=curves>{drawn}</div><p class=soft>{shown(source)}</p>{_criteria(page)}"


def _criteria(page: RunPage) -> str:
    if page.seen.criteria is None:
        return ""
    rows = [
        row(shown(title), shown(result), unbroken=(0,)) for title, result in success.facts(page.seen.criteria)
    ]
    return table(("criterion of the config", "by the last value reported"), rows)


def _results(page: RunPage, steps: StepsAfter) -> str:
    rows = [row(shown(name), shown(text), unbroken=(0,)) for name, text in result_facts(page.seen.results)]
    found = (
        table(("result", "value"), rows)
        if rows
        else _pending(page, "No evaluation and no step has left a result yet.")
    )
    return f"<p>{shown(steps.text)}</p>{found}"


def _checkpoints(page: RunPage, now: RunFigures) -> str:
    if not page.seen.checkpoints:
        return _pending(page, "There is no checkpoint in the bucket.")
    rows = [
        row(
            f"{one.step:,}",
            f"{sections.attempt_dot(one.attempt)}{one.attempt}" if one.attempt else "-",
            f"{one.files:,}",
            size(one.size_bytes),
            f"{span(page.now_s - one.saved_s)} ago",
            _state(one, now),
            numbers=(0, 2, 3, 4),
            unbroken=(1, 5),
        )
        for one in page.seen.checkpoints
    ]
    return table(("step", "attempt", "files", "size", "saved", "state"), rows, numbers=(0, 2, 3, 4))


def _state(one: CheckpointSummary, now: RunFigures) -> str:
    state = (
        "of another run"
        if not one.attempt
        else "durable"
        if one.step <= now.durable_step
        else "not committed"
    )
    return f"{state}, {one.mark}" if one.mark else state


def _log(page: RunPage) -> str:
    if not page.seen.log.name:
        return _pending(page, "There is no log yet.") + _evidence(page)
    # The outer box turns its content around, so that it shows the newest lines first without a script.
    text = f"<div class=log tabindex=0><pre>{shown(page.seen.log.text)}</pre></div>"
    return f"<p class=soft>The end of {shown(page.seen.log.name)}</p>{text}{_evidence(page)}"


def _evidence(page: RunPage) -> str:
    if not page.seen.evidence:
        return ""
    rows = [row(f"<code>{shown(key)}</code>") for key in page.seen.evidence]
    return f"<p></p>{table(('saved to the bucket when an attempt ended',), rows)}"


def _history(page: RunPage) -> str:
    if not page.history:
        return none("Nothing has happened yet.")
    newest = page.history[-EVENTS_MAX:][::-1]
    earlier = len(page.history) - len(newest)
    return sections.history(page.record.run, newest) + (
        none(f"And {earlier:,} earlier events.") if earlier else ""
    )


def _facts(page: RunPage, one: RunStatus) -> Iterator[tuple[str, str]]:
    now = one.figures
    yield "config", one.name
    if now.run.lineage is not None:
        yield "started from", now.run.lineage.text
    if one.probe is not None:
        yield "measured", one.probe.text
    if one.tags:
        yield "tags", ", ".join(one.tags)
    if one.pod:
        yield "machine", f"{one.offer}, {one.pod}"
    if one.gpus is not None:
        yield "GPUs", gpu_text(one.gpus)
    yield from saving_facts(one.saving) if one.saving is not None else ()
    if now.trained:
        yield "training", now.trained
    if now.deadline:
        yield "deadline", now.deadline
    if page.seen.tracker_url:
        yield "W&B", page.seen.tracker_url


def _foot(page: RunPage) -> str:
    at = datetime.fromtimestamp(page.now_s, UTC)
    return (
        f"As of {at:%Y-%m-%d %H:%M:%S} UTC, {span(page.now_s - page.record.run.created_s)} after the launch."
    )
