"""The picture and its tables as one HTML page without scripts or external resources."""

from collections.abc import Mapping, Sequence
from html import escape

from prime_train.core.causes import POLICY
from prime_train.core.figures import RunFigures, figures
from prime_train.core.run import HistoryEvent, Run, RunState
from prime_train.core.text.formatting import usd
from prime_train.reports.charts import facts
from prime_train.reports.charts.facts import Point
from prime_train.reports.charts.plot import timeline_svg
from prime_train.reports.charts.svg import PART_COLOURS, colour_of, seconds
from prime_train.trainers import trainer_for

LINES_MAX = 2000

MEANINGS = {
    "provision": "from the create call to the agent's first heartbeat",
    "restore": "set-up, verification and restore, until the first step",
    "useful": "steps made for the first time",
    "recomputed": "steps that had been made before and were lost",
    "detection": "from the last sign of life to the fence",
    "teardown": "until the provider said that the machine was gone",
}

_GOOD, _BAD = {RunState.SUCCEEDED}, {RunState.FAILED, RunState.STOPPED}

STYLE = """
:root { color-scheme: light dark; --bg: #ffffff; --panel: #f6f7f9; --ink: #1b2230; --soft: #626d80; --line: #d9dee7; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161e; --panel: #1a202b; --ink: #e8ecf3; --soft: #98a3b6; --line: #303949; } }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1160px; margin: 28px auto 60px; padding: 0 20px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 10px; }
p.why { margin: 0 0 20px; color: var(--soft); }
.pill { font-size: 14px; font-weight: 600; padding: 3px 11px; border-radius: 99px; color: #fff; background: #626d80; }
.pill { vertical-align: 4px; margin-left: 8px; }
.pill.good { background: #22845c; } .pill.bad { background: #c0443f; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 0 0 22px; }
.card { background: var(--panel); border-radius: 10px; padding: 12px 16px; }
.card b { display: block; font-size: 22px; line-height: 1.3; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: 13px; }
svg.pt-svg { width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: 6px 20px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } tr.sum td { font-weight: 600; }
.dot { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 8px; vertical-align: -1px; }
td.kind { white-space: nowrap; } code { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
"""


def page_html(
    run: Run,
    history: Sequence[HistoryEvent],
    points: Sequence[Point],
    commits: Sequence[Point] = (),
    extra: Mapping[str, str] | None = None,
) -> str:
    """Return the whole page. `extra` adds rows of facts, such as the hash of the weights."""
    now = figures(run, None, int(facts.end_s(run, history, [*points, *commits])))
    body = [
        f"<h1>{escape(run.run_id)}{_pill(run.state)}</h1><p class='why'>{escape(run.why or 'not over yet')}</p>",
        _cards(now, history, points),
        timeline_svg(run, history, points, commits, titled=False),
        "<h2>Ledger</h2>" + _ledger(now),
        "<h2>Attempts</h2>" + _attempts(now),
        "<h2>Timeline</h2>" + _timeline(run, history),
        "<h2>Facts</h2>" + _facts(run, extra or {}),
    ]
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'><title>{escape(run.run_id)}</title>"
    return f"<!doctype html><html lang='en'><head>{head}<style>{STYLE}</style></head><body><main>{''.join(body)}</main></body></html>\n"


def _pill(state: RunState) -> str:
    kind = "good" if state in _GOOD else "bad" if state in _BAD else ""
    return f"<span class='pill {kind}'>{state.value}</span>"


def _cards(now: RunFigures, history: Sequence[HistoryEvent], points: Sequence[Point]) -> str:
    run, spent = now.run, now.totals
    wanted = f" of {run.spec.trainer.steps:,}" if run.spec.trainer.steps else ""
    lost = facts.losses(run, history, points)
    idle_s = sum(loss.trains_s - loss.lost_s for loss in lost if loss.trains_s is not None)
    cards = {
        f"steps{wanted}": f"{now.best_step:,}",
        "attempts": str(now.attempts),
        "paid machine time": now.paid,
        f"spent of {usd(run.spec.budget.usd)}": usd(spent.usd),
        "of paid time useful": now.useful_share,
        "without training": seconds(idle_s),
    }
    return (
        "<div class='cards'>"
        + "".join(f"<div class='card'><b>{escape(v)}</b><span>{escape(k)}</span></div>" for k, v in cards.items())
        + "</div>"
    )


def _table(head: Sequence[str], rows: Sequence[str], *, numbers: Sequence[int] = ()) -> str:
    cells = "".join(f"<th{' class=n' if place in numbers else ''}>{escape(title)}</th>" for place, title in enumerate(head))
    return f"<div class=wide><table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _swatch(colour: str) -> str:
    return f"<span class='dot' style='background:{colour}'></span>"


def _ledger(now: RunFigures) -> str:
    rows = [
        f"<tr><td class=kind>{_swatch(PART_COLOURS[s.name])}{s.name}</td><td>{MEANINGS[s.name]}</td><td class=n>{s.time}</td>"
        f"<td class=n>{s.share}</td><td class=n>{s.money}</td></tr>"
        for s in now.parts
    ]
    rows.append(
        f"<tr class=sum><td>all</td><td></td><td class=n>{now.paid}</td><td class=n></td><td class=n>{usd(now.totals.usd)}</td></tr>"
    )
    return _table(("paid for", "what it is", "time", "share", "dollars"), rows, numbers=(2, 3, 4))


def _attempts(now: RunFigures) -> str:
    rows = []
    for cost in now.costs():
        attempt, paid = cost.current_attempt, f"<td class=n>{cost.time}</td><td class=n>{cost.money}</td>"
        if attempt is None:
            rows.append(f"<tr><td class=kind></td><td class=kind>{now.others()}</td>{'<td></td>' * 3}{paid}<td></td></tr>")
            continue
        offer = f"{attempt.offer.offer_id}, {'spot' if attempt.offer.spot else 'on-demand'}, {usd(attempt.offer.usd_per_hour)}/h"
        end = POLICY[attempt.cause].title if attempt.cause else "running" if attempt.ended_s is None else "ended"
        rows.append(
            f"<tr><td class=kind>{_swatch(colour_of(attempt.number))}{attempt.number}</td><td class=kind>{escape(offer)}</td>"
            f"<td class=n>{attempt.resumed_step:,}</td><td class=n>{attempt.last_step:,}</td><td class=n>{attempt.durable_step:,}</td>"
            f"{paid}<td class=kind>{escape(end)}</td></tr>"
        )
    head = ("attempt", "machine", "from step", "to step", "durable", "paid", "spent", "ended by")
    return _table(head, rows, numbers=(2, 3, 4, 5, 6))


def _timeline(run: Run, history: Sequence[HistoryEvent]) -> str:
    rows = [
        f"<tr><td class=n>+{seconds(line.at_s - run.created_s)}</td><td class=kind>"
        f"{_swatch(colour_of(line.attempt)) if line.attempt else ''}{line.attempt or ''}</td>"
        f"<td class=kind>{escape(line.kind.replace('_', ' '))}</td><td>{escape(line.text)}</td></tr>"
        for line in history[-LINES_MAX:]
    ]
    return _table(("time", "attempt", "what", ""), rows, numbers=(0,))


def _facts(run: Run, extra: Mapping[str, str]) -> str:
    rows = {"commit": run.commit or "none", "command": trainer_for(run.spec).shown_command(run.spec), **extra}
    return _table(("", ""), [f"<tr><td class=kind>{escape(k)}</td><td><code>{escape(v)}</code></td></tr>" for k, v in rows.items()])
