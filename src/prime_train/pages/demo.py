"""The page that the demo writes: the timeline chart with its tables."""

from collections.abc import Mapping, Sequence

from prime_train.pages import sections
from prime_train.pages.charts import timeline_data
from prime_train.pages.charts.svg import seconds
from prime_train.pages.charts.timeline import timeline_svg
from prime_train.pages.charts.timeline_data import Point
from prime_train.pages.document import document
from prime_train.pages.markup import cards, pill, shown
from prime_train.runs.figures import RunFigures, figures
from prime_train.runs.run import HistoryEvent, Run
from prime_train.text.formatting import usd

EVENTS_MAX = 2000


def demo_page_html(
    run: Run,
    history: Sequence[HistoryEvent],
    points: Sequence[Point],
    commits: Sequence[Point] = (),
    extra: Mapping[str, str] | None = None,
) -> str:
    """Return the complete page. `extra` adds rows of facts, such as the hash of the weights."""
    now = figures(run, None, int(timeline_data.end_s(run, history, [*points, *commits])))
    body = [
        f"<h1>{shown(run.run_id)}{pill(run.state)}</h1><p class=why>{shown(run.why or 'not over yet')}</p>",
        _cards(now, history, points),
        timeline_svg(run, history, points, commits, titled=False),
        "<h2>Ledger</h2>" + sections.ledger(now),
        "<h2>Attempts</h2>" + sections.attempts(now),
        "<h2>Timeline</h2>" + sections.history(run, history[-EVENTS_MAX:]),
        "<h2>Facts</h2>" + sections.facts(run, extra or {}),
    ]
    return document(run.run_id, "".join(body))


def _cards(now: RunFigures, history: Sequence[HistoryEvent], points: Sequence[Point]) -> str:
    run, spent = now.run, now.totals
    wanted = f" of {run.spec.trainer.steps:,}" if run.spec.trainer.steps else ""
    lost = timeline_data.losses(run, history, points)
    idle_s = sum(loss.trains_s - loss.lost_s for loss in lost if loss.trains_s is not None)
    return cards(
        [
            (f"{now.best_step:,}", f"steps{wanted}"),
            (str(now.attempts), "attempts"),
            (now.paid, "paid machine time"),
            (usd(spent.usd), f"spent of {usd(run.spec.budget.usd)}"),
            (now.useful_share, "of paid time useful"),
            (seconds(idle_s), "without training"),
        ]
    )
