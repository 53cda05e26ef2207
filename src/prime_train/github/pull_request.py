"""The state of a run, as a comment on the pull request that started it."""

from datetime import UTC, datetime
from itertools import pairwise

from prime_train.outputs.results.comparison import PullResults
from prime_train.outputs.results.comparison_texts import check_of, lines_of
from prime_train.outputs.results.criteria import NOT_REPORTED, in_results, judged
from prime_train.outputs.results.criteria_values import facts
from prime_train.runs.figures import RunFigures, figures
from prime_train.runs.headline import _causes, _progress, _share, says
from prime_train.runs.links import page_url
from prime_train.runs.open_alerts import open_alerts
from prime_train.runs.run import ACTIVE_STATES, Attempt, DesiredState, Lease, Run, RunState
from prime_train.spec.causes import POLICY
from prime_train.status.run_status import probe_result
from prime_train.text.formatting import usd
from prime_train.text.markdown import code, cut, folded, plain, table
from prime_train.text.redaction import redacted

ATTEMPTS_SHOWN_MAX = 12
DETAIL_CHARS_MAX = 200

MARKS: dict[RunState, str] = {
    RunState.QUEUED: "⚪",
    RunState.LAUNCHING: "🟡",
    RunState.BOOTING: "🟡",
    RunState.STARTING: "🟡",
    RunState.TRAINING: "🟢",
    RunState.DRAINING: "🟠",
    RunState.UPLOADING: "🔵",
    RunState.FINISHING: "🔵",
    RunState.SUCCEEDED: "✅",
    RunState.FAILED: "❌",
    RunState.CANCELLED: "⛔",
    RunState.STOPPED: "🛑",
}


def run_comment(
    run: Run,
    lease: Lease,
    now_s: int,
    *,
    found: PullResults | None = None,
    links: dict[str, str] | None = None,
) -> str:
    """Return the complete comment. `found`: the results of a run that has ended, None if they were not looked
    up; `links` maps titles to URLs, shown at the bottom next to the tracker's link.
    """
    found = found or PullResults(unread="they were not looked up")
    now = figures(run, lease, now_s)
    lines = [f"### {MARKS[run.state]} {code(run.run_id)} {says(run)}", ""]
    lines += [line for reason in _reasons(run) for line in (f"> {reason}", "")]
    lines += table(("Step", _progress(now)), _facts(now, lease, found))
    lines += _results(run, found, now_s)
    image = chart(now.run, now.step, now_s)
    lines += ["", *image] if image else []
    lines += ["", *folded("Where the paid time went", _ledger(now))] if run.attempts else []
    lines += ["", *folded(f"Attempts ({now.attempts})", _attempts(now))] if run.attempts else []
    return "\n".join([*lines, "", _foot(run, now_s, {"W&B": page_url(run)} | (links or {}))]) + "\n"


def _reasons(run: Run) -> list[str]:
    """Return the sentences shown before all figures: why the run ended, a stop that was requested but not yet
    done, and open alerts.
    """
    why = [plain(cut(redacted(run.why), DETAIL_CHARS_MAX))] if run.why else []
    alerts = [f"Alert: {plain(cut(alert.text, DETAIL_CHARS_MAX))}" for alert in open_alerts(run)]
    return (
        why
        + (["A stop is requested."] if run.desired is not DesiredState.RUN and not run.is_over else [])
        + alerts
    )


def _results(run: Run, found: PullResults, now_s: int) -> list[str]:
    """Return the section that compares the run with the base branch. Without requirements, it is only shown
    if there is a base run.
    """
    comparison = found.comparison
    if comparison is not None and (run.spec.require or comparison.base is not None):
        return ["", "#### Compared with the base branch", "", *lines_of(comparison, now_s)]
    check = check_of(run, found)
    return ["", f"Requirements: {check.state}: {plain(check.text)}."] if check is not None else []


def _facts(now: RunFigures, lease: Lease, found: PullResults) -> list[tuple[str, ...]]:
    run, durable = now.run, now.durable_step
    rows = (
        [("Furthest step", f"{now.best_step:,}, by an earlier attempt")] if now.best_step > now.step else []
    )
    rows += [
        ("Newest checkpoint in the bucket", f"step {durable:,}" if durable else "none yet"),
        ("Spent", f"{now.money} ({_share(now.totals.usd, run.spec.budget.usd)}), {now.paid} of paid time"),
    ]
    measured = probe_result(run)
    rows += [("Measured", plain(measured.text))] if measured is not None else []
    rows += [("Training", now.trained)] if now.trained else []
    rows += [("Deadline", now.deadline)] if now.deadline else []
    if run.state in ACTIVE_STATES and run.current_attempt is not None:
        rows.append(("Machine", f"attempt {run.attempt}: {_machine(run.current_attempt)}"))
    rows.append(("Restarts", f"{now.restarts}: {_causes(now)}" if now.restarts else "none"))
    heartbeat = lease.heartbeat if lease.attempt == run.attempt and not run.is_over else None
    if heartbeat is not None:
        seen = (
            [f"loss nan since step {heartbeat.not_finite_since:,}"]
            if heartbeat.not_finite_since is not None
            else []
        )
        seen += [
            f"{name} {value:.4g}"
            for name, value in (("loss", heartbeat.loss), ("reward", heartbeat.reward))
            if value is not None
        ]
        rows += [("Trainer says", ", ".join(seen))] if seen else []
    if run.spec.success is not None and run.is_over:
        unknown = f"the results cannot be read: {redacted(found.unread)}" if found.unread else NOT_REPORTED
        last = in_results(run.spec.trainer.kind, found.results.final) if found.results is not None else {}
        rows += [
            (f"Wanted: {name}", result) for name, result in facts(judged(run.spec.success, last, unknown))
        ]
    return [(f"**{name}**", text) for name, text in rows]


def _machine(attempt: Attempt) -> str:
    offer = attempt.offer
    kind = "spot" if offer.spot else "on demand"
    gpus = f"{offer.gpu_count} × {offer.gpu}" if offer.gpu else "no GPU"
    variant = f", {plain(attempt.variant)}" if attempt.variant else ""
    return f"{plain(gpus)}, {plain(offer.provider)}, {kind}, {usd(offer.usd_per_hour)} an hour{variant}"


_WORDS = {
    "useful": "useful training",
    "recomputed": "repeated training",
    "after": "steps after training",
    "provision": "waiting for machines to start",
    "restore": "setup and restore",
    "detection": "until a lost machine was detected",
    "teardown": "until machines were gone",
}
"""Labels of the ledger's parts, in display order."""


def _ledger(now: RunFigures) -> list[str]:
    parts = {part.name: part for part in now.parts if part.seconds}
    rows: list[tuple[str, ...]] = [
        (words, parts[name].time, parts[name].share) for name, words in _WORDS.items() if name in parts
    ]
    return table(
        ("what for", "time", "share"),
        [*rows, ("**in all**", f"**{now.paid}**", f"**{usd(now.totals.usd)}**")],
    )


def _attempts(now: RunFigures) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for cost in now.costs(ATTEMPTS_SHOWN_MAX):
        attempt = cost.current_attempt
        if attempt is None:
            rows.append(("", now.others(ATTEMPTS_SHOWN_MAX), "", cost.money, ""))
            continue
        ended = (
            POLICY[attempt.cause].title
            if attempt.cause is not None
            else "goes on"
            if attempt.fenced_s is None
            else "ended"
        )
        detail = (
            f": {shown_detail}"
            if (shown_detail := code(cut(redacted(attempt.detail), DETAIL_CHARS_MAX)))
            else ""
        )
        steps = (
            f"{attempt.resumed_step:,} to {attempt.last_step:,}"
            if attempt.last_step > attempt.resumed_step
            else "none"
        )
        rows.append((str(attempt.number), _machine(attempt), steps, cost.money, ended + detail))
    return table(("attempt", "machine", "steps", "cost", "end"), rows)


def _foot(run: Run, now_s: int, links: dict[str, str]) -> str:
    origin = run.origin
    parts = [f"as of {datetime.fromtimestamp(now_s, UTC):%Y-%m-%d %H:%M} UTC"]
    if origin is not None:
        by = f", requested by {plain(origin.actor)}" if origin.actor else ""
        parts.insert(0, f"{code(origin.config)} at {origin.commit[:12]}{by}")
    return f"<sub>{' · '.join([*parts, *(f'[{plain(title)}]({url})' for title, url in links.items() if url)])}</sub>"


SAMPLES = 40
HOUR_S = 3600
LOOK = (
    '%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#1f6feb"}}, "xyChart": {"width": '
    "720, "
    '"height": 260}}}%%'
)
"""Theme of the chart: a blue that is visible on white and on black, unlike the theme's own colour."""


def chart(run: Run, step: int, now_s: int) -> list[str]:
    """Return the lines of a mermaid block, or an empty list while no step was made."""
    start_s, end_s = run.created_s, run.ended_s if run.ended_s is not None else now_s
    corners = _corners(run, step, end_s)
    if end_s <= start_s or len(corners) < 2 or corners[-1][1] == 0:
        return []
    places = [start_s + (end_s - start_s) * place / (SAMPLES - 1) for place in range(SAMPLES)]
    line = ", ".join(str(round(_at(corners, at_s))) for at_s in places)
    top = max(run.spec.trainer.steps or 0, *(height for _, height in corners))
    hours = (end_s - start_s) / HOUR_S
    unit, length = ("hours", hours) if hours >= 1 else ("minutes", hours * 60)
    return [
        "```mermaid",
        LOOK,
        "xychart-beta",
        f'    x-axis "{unit} since the launch" 0 --> {max(length, 0.1):.1f}',
        f'    y-axis "step" 0 --> {max(top, 1)}',
        f"    line [{line}]",
        "```",
    ]


def _corners(run: Run, step: int, end_s: int) -> list[tuple[float, int]]:
    """Return pairs of second and step in order of time: each attempt from the step it resumed to its last
    step.
    """
    found: list[tuple[float, int]] = [(run.created_s, 0)]
    for attempt in run.attempts:
        if attempt.first_step_s is not None:
            found += [(attempt.first_step_s, attempt.resumed_step), _end(attempt, run, step, end_s)]
    return sorted(found, key=lambda corner: corner[0])


def _end(attempt: Attempt, run: Run, step: int, end_s: int) -> tuple[float, int]:
    if attempt is run.current_attempt and attempt.fenced_s is None:
        return end_s, max(step, attempt.last_step)
    last_s = attempt.last_sign_s if attempt.last_sign_s is not None else attempt.fenced_s
    return max(last_s or 0, attempt.first_step_s or 0), attempt.last_step


def _at(corners: list[tuple[float, int]], at_s: float) -> float:
    for (before_s, before), (after_s, after) in pairwise(corners):
        if before_s <= at_s < after_s:
            rises = after > before
            return before + (after - before) * (at_s - before_s) / (after_s - before_s) if rises else before
    return corners[-1][1]
