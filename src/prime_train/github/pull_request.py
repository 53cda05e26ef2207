"""The state of a run, as a comment on the pull request that started it."""

from datetime import UTC, datetime

from prime_train.github.run_comment import chart
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


def run_comment(run: Run, lease: Lease, now_s: int, *, found: PullResults | None = None, links: dict[str, str] | None = None) -> str:
    """Return the complete comment. `found`: the results of a run that has ended, None if they were not looked up; `links` maps titles to
    URLs, shown at the bottom next to the tracker's link."""
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
    """Return the sentences shown before all figures: why the run ended, a stop that was requested but not yet done, and open alerts."""
    why = [plain(cut(redacted(run.why), DETAIL_CHARS_MAX))] if run.why else []
    alerts = [f"Alert: {plain(cut(alert.text, DETAIL_CHARS_MAX))}" for alert in open_alerts(run)]
    return why + (["A stop is requested."] if run.desired is not DesiredState.RUN and not run.is_over else []) + alerts


def _results(run: Run, found: PullResults, now_s: int) -> list[str]:
    """Return the section that compares the run with the base branch. Without requirements, it is only shown if there is a base run."""
    comparison = found.comparison
    if comparison is not None and (run.spec.require or comparison.base is not None):
        return ["", "#### Compared with the base branch", "", *lines_of(comparison, now_s)]
    check = check_of(run, found)
    return ["", f"Requirements: {check.state}: {plain(check.text)}."] if check is not None else []


def _facts(now: RunFigures, lease: Lease, found: PullResults) -> list[tuple[str, ...]]:
    run, durable = now.run, now.durable_step
    rows = [("Furthest step", f"{now.best_step:,}, by an earlier attempt")] if now.best_step > now.step else []
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
        seen = [f"loss nan since step {heartbeat.not_finite_since:,}"] if heartbeat.not_finite_since is not None else []
        seen += [f"{name} {value:.4g}" for name, value in (("loss", heartbeat.loss), ("reward", heartbeat.reward)) if value is not None]
        rows += [("Trainer says", ", ".join(seen))] if seen else []
    if run.spec.success is not None and run.is_over:
        unknown = f"the results cannot be read: {redacted(found.unread)}" if found.unread else NOT_REPORTED
        last = in_results(run.spec.trainer.kind, found.results.final) if found.results is not None else {}
        rows += [(f"Wanted: {name}", result) for name, result in facts(judged(run.spec.success, last, unknown))]
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
    rows: list[tuple[str, ...]] = [(words, parts[name].time, parts[name].share) for name, words in _WORDS.items() if name in parts]
    return table(("what for", "time", "share"), [*rows, ("**in all**", f"**{now.paid}**", f"**{usd(now.totals.usd)}**")])


def _attempts(now: RunFigures) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for cost in now.costs(ATTEMPTS_SHOWN_MAX):
        attempt = cost.current_attempt
        if attempt is None:
            rows.append(("", now.others(ATTEMPTS_SHOWN_MAX), "", cost.money, ""))
            continue
        ended = POLICY[attempt.cause].title if attempt.cause is not None else "goes on" if attempt.fenced_s is None else "ended"
        detail = f": {shown_detail}" if (shown_detail := code(cut(redacted(attempt.detail), DETAIL_CHARS_MAX))) else ""
        steps = f"{attempt.resumed_step:,} to {attempt.last_step:,}" if attempt.last_step > attempt.resumed_step else "none"
        rows.append((str(attempt.number), _machine(attempt), steps, cost.money, ended + detail))
    return table(("attempt", "machine", "steps", "cost", "end"), rows)


def _foot(run: Run, now_s: int, links: dict[str, str]) -> str:
    origin = run.origin
    parts = [f"as of {datetime.fromtimestamp(now_s, UTC):%Y-%m-%d %H:%M} UTC"]
    if origin is not None:
        by = f", requested by {plain(origin.actor)}" if origin.actor else ""
        parts.insert(0, f"{code(origin.config)} at {origin.commit[:12]}{by}")
    return f"<sub>{' · '.join([*parts, *(f'[{plain(title)}]({url})' for title, url in links.items() if url)])}</sub>"
