"""How a run stands, as a comment on the pull request it came from."""

from collections import Counter
from datetime import UTC, datetime

from prime_train.core import ledger
from prime_train.core.amounts import span, usd
from prime_train.core.causes import POLICY
from prime_train.core.masking import masked
from prime_train.core.offers import Offer
from prime_train.core.run import ATTENDED, Attempt, Lease, Run, RunState, Want
from prime_train.core.tracked import page_url
from prime_train.told.markdown import code, cut, folded, plain, table
from prime_train.told.plot import chart

ATTEMPTS_SHOWN_MAX = 12
DETAIL_CHARS_MAX = 200

MARKS: dict[RunState, str] = {
    RunState.QUEUED: "⚪",
    RunState.LAUNCHING: "🟡",
    RunState.BOOTING: "🟡",
    RunState.STARTING: "🟡",
    RunState.TRAINING: "🟢",
    RunState.DRAINING: "🟠",
    RunState.SUCCEEDED: "✅",
    RunState.FAILED: "❌",
    RunState.CANCELLED: "⛔",
    RunState.STOPPED: "🛑",
}

SAYS: dict[RunState, str] = {
    RunState.QUEUED: "waits for a machine",
    RunState.LAUNCHING: "asks for a machine",
    RunState.BOOTING: "has a machine, which boots",
    RunState.STARTING: "sets its machine up",
    RunState.TRAINING: "is training",
    RunState.DRAINING: "saves, and gives its machine back",
    RunState.SUCCEEDED: "has succeeded",
    RunState.FAILED: "has failed",
    RunState.CANCELLED: "was cancelled",
    RunState.STOPPED: "has stopped: a person must look",
}
AS_ASKED = "was stopped, as asked"


def stopped_as_asked(run: Run) -> bool:
    """By a person: nobody need look."""
    return run.state is RunState.STOPPED and run.want is not Want.RUN


def says(run: Run) -> str:
    """In a few words, how it is."""
    return AS_ASKED if stopped_as_asked(run) else SAYS[run.state]


def step_of(run: Run, lease: Lease) -> int:
    """The newest step that is known of the newest attempt."""
    attempt = run.attempt
    heard = lease.beat.step if lease.beat is not None and lease.epoch == run.epoch else 0
    return max(heard, attempt.last_step if attempt is not None else 0)


def headline(run: Run, lease: Lease, now_s: int) -> str:
    """One line without Markdown, for where there is room for no more."""
    spent = ledger.totals(run, now_s)
    parts = [says(run), f"step {_progress(run, lease)}", f"{usd(spent.usd)} of {usd(run.spec.budget.usd)}"]
    count = _restart_count(run)
    return ", ".join(parts + ([f"{count} restart{'' if count == 1 else 's'}: {_causes(run)}"] if count else []))


def run_page(run: Run, lease: Lease, now_s: int, *, links: dict[str, str] | None = None) -> str:
    """The whole comment. `links`: title to URL, shown at the foot beside the tracker's."""
    lines = [f"### {MARKS[run.state]} {code(run.run_id)} {says(run)}", ""]
    lines += [line for said in _said(run) for line in (f"> {said}", "")]
    lines += table(("Step", _progress(run, lease)), _facts(run, lease, now_s))
    picture = chart(run, step_of(run, lease), now_s)
    lines += ["", *picture] if picture else []
    lines += ["", *folded("Where the paid time went", _ledger(run, now_s))] if run.attempts else []
    lines += ["", *folded(f"Attempts ({run.epoch})", _attempts(run, now_s))] if run.attempts else []
    return "\n".join([*lines, "", _foot(run, now_s, {"W&B": page_url(run)} | (links or {}))]) + "\n"


def _said(run: Run) -> list[str]:
    """Sentences that come before all figures: why it ended, and what it is asked that is not done yet."""
    why = [plain(cut(masked(run.why), DETAIL_CHARS_MAX))] if run.why else []
    return why + (["A stop is asked for."] if run.want is not Want.RUN and not run.is_over else [])


def _facts(run: Run, lease: Lease, now_s: int) -> list[tuple[str, ...]]:
    spent, budget = ledger.totals(run, now_s), run.spec.budget
    durable = max(run.durable_step, lease.committed_step if lease.epoch == run.epoch else 0)
    rows = [
        ("Newest checkpoint in the bucket", f"step {durable:,}" if durable else "none yet"),
        ("Spent", f"{usd(spent.usd)} of {usd(budget.usd)} ({_share(spent.usd, budget.usd)}), {span(spent.paid_s)} of paid time"),
    ]
    if run.state in ATTENDED and run.attempt is not None:
        rows.append(("Machine", f"attempt {run.epoch}: {_machine(run.attempt.offer)}"))
    rows.append(("Restarts", f"{_restart_count(run)}: {_causes(run)}" if _restart_count(run) else "none"))
    beat = lease.beat if lease.epoch == run.epoch and not run.is_over else None
    if beat is not None:
        seen = [f"{name} {value:.4g}" for name, value in (("loss", beat.loss), ("reward", beat.reward)) if value is not None]
        rows += [("Trainer says", ", ".join(seen))] if seen else []
    return [(f"**{name}**", said) for name, said in rows]


def _progress(run: Run, lease: Lease) -> str:
    step, steps = step_of(run, lease), run.spec.trainer.steps
    return f"{step:,} of {steps:,} ({_share(step, steps)})" if steps else f"{step:,}"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _machine(offer: Offer) -> str:
    kind = "spot" if offer.spot else "on demand"
    gpus = f"{offer.gpu_count} × {offer.gpu}" if offer.gpu else "no GPU"
    return f"{plain(gpus)}, {plain(offer.provider)}, {kind}, {usd(offer.usd_per_hour)} an hour"


def _causes(run: Run) -> str:
    """Of restarts, with how many there were of each."""
    counts = Counter(POLICY[attempt.cause].title for attempt in _lost(run) if attempt.cause is not None)
    counts.update({"earlier ones": run.folded.attempts} if run.folded.attempts else {})
    return ", ".join(f"{title} ×{count}" if count > 1 else title for title, count in counts.most_common())


def _restart_count(run: Run) -> int:
    return len(_lost(run)) + run.folded.attempts


def _lost(run: Run) -> list[Attempt]:
    """Attempts that another one has followed, or will: the end of the run itself is none."""
    return [a for a in run.attempts if a.fenced_s is not None and not (run.is_over and a is run.attempt)]


def _ledger(run: Run, now_s: int) -> list[str]:
    total = ledger.totals(run, now_s)
    parts = (
        ("useful training", total.useful_s),
        ("training done again", total.recomputed_s),
        ("waiting for machines to come up", total.provision_s),
        ("set-up and restore", total.restore_s),
        ("until a loss was noticed", total.detection_s),
        ("until machines were gone", total.teardown_s),
    )
    rows: list[tuple[str, ...]] = [(name, span(seconds), _share(seconds, total.paid_s)) for name, seconds in parts if seconds]
    return table(("what for", "time", "share"), [*rows, ("**in all**", f"**{span(total.paid_s)}**", f"**{usd(total.usd)}**")])


def _attempts(run: Run, now_s: int) -> list[str]:
    shown = run.attempts[-ATTEMPTS_SHOWN_MAX:]
    rows: list[tuple[str, ...]] = []
    for attempt in shown:
        ended = POLICY[attempt.cause].title if attempt.cause is not None else "goes on" if attempt.fenced_s is None else "ended"
        detail = f": {said}" if (said := code(cut(masked(attempt.detail), DETAIL_CHARS_MAX))) else ""
        cost = usd(ledger.attempt_totals(attempt, now_s).usd)
        steps = f"{attempt.resumed_step:,} to {attempt.last_step:,}" if attempt.last_step > attempt.resumed_step else "none"
        rows.append((str(attempt.epoch), _machine(attempt.offer), steps, cost, ended + detail))
    lines = table(("attempt", "machine", "steps", "cost", "end"), rows)
    hidden = run.epoch - len(shown)
    return [*lines, "", f"… and {hidden} before"] if hidden > 0 else lines


def _foot(run: Run, now_s: int, links: dict[str, str]) -> str:
    origin = run.origin
    parts = [f"as of {datetime.fromtimestamp(now_s, UTC):%Y-%m-%d %H:%M} UTC"]
    if origin is not None:
        by = f", asked for by {plain(origin.actor)}" if origin.actor else ""
        parts.insert(0, f"{code(origin.config)} at {origin.commit[:12]}{by}")
    return f"<sub>{' · '.join([*parts, *(f'[{plain(title)}]({url})' for title, url in links.items() if url)])}</sub>"
