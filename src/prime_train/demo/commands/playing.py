"""Show the demo while it is played: as a live view, or as lines if the output is not a terminal."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prime_train.demo.stage import Stage
from prime_train.demo.story import Story, play
from prime_train.pages.charts.svg import colour_of
from prime_train.pages.charts.timeline_data import TAKEN, Point
from prime_train.runs.run import HistoryEvent
from prime_train.runs.store import RunRecord
from prime_train.spec.spec import RunSpec
from prime_train.status.run_status import RunFacts, RunStatus, status_of
from prime_train.terminal.history import history_line
from prime_train.terminal.tables import lines, state_text
from prime_train.text.formatting import span

LINES_SHOWN = 14
BAR_WIDTH = 64


def show_play(here: Stage, spec: RunSpec, console: Console, *, kill: bool) -> Story:
    """Play the demo to its end, showing it meanwhile, and return its story."""
    console.print(
        Text.assemble(("prime-train demo", "bold"), f"  run {here.run_id}, {spec.trainer.steps} steps")
    )
    if not console.is_terminal:
        return play(here, kill=kill, show=_Lines(console).show)
    store = here.home.store()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(story: Story) -> None:
            live.update(view(story.record, story.lines(), story.points, store.now_s()), refresh=True)

        return play(here, kill=kill, show=show)


class _Lines:
    """Prints a line for each event once."""

    def __init__(self, console: Console) -> None:
        self._console, self._printed, self._taken_printed = console, 0, False

    def show(self, story: Story) -> None:
        taken = [story.taken] if story.taken is not None and not self._taken_printed else []
        for line in [*taken, *story.history[self._printed :]]:
            text = history_line(line.at_s - story.run.created_s, line.attempt, line.kind, line.text)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._printed, self._taken_printed = len(story.history), story.taken is not None


def view(
    record: RunRecord, history: Sequence[HistoryEvent], points: Sequence[Point], now_s: int
) -> RenderableType:
    """Return one frame of the live view."""
    one = status_of(RunFacts(record, now_s))
    return Group(
        Text(),
        _facts(one, now_s),
        Text(),
        _bars(record, points),
        Text(),
        lines(_marked(history), one.created_s),
    )


def _facts(one: RunStatus, now_s: int) -> RenderableType:
    grid = Table.grid(padding=(0, 3))
    doing = f"  {one.phase}" if one.phase else ""
    grid.add_row("state", Text.assemble(state_text(one.state), doing), "time", span(now_s - one.created_s))
    grid.add_row("step", one.figures.steps_text, "spent", one.money)
    grid.add_row("last heartbeat", one.heartbeat, "restarts", one.causes)
    return grid


def _bars(record: RunRecord, points: Sequence[Point]) -> RenderableType:
    """Return one bar for each attempt, in the colours of the chart."""
    total = record.run.spec.trainer.steps or 1
    grid = Table.grid(padding=(0, 2))
    for attempt in record.run.attempts:
        step = max([attempt.last_step, *(p.step for p in points if p.attempt == attempt.number)])
        colour = colour_of(attempt.number)
        bar = ProgressBar(
            total=total, completed=step, width=BAR_WIDTH, complete_style=colour, finished_style=colour
        )
        kind = "spot" if attempt.offer.spot else "on-demand"
        origin = f"from {attempt.resumed_step}" if attempt.resumed_step else ""
        ended = attempt.cause.value.replace("_", " ") if attempt.cause is not None else ""
        grid.add_row(f"attempt {attempt.number}", kind, bar, f"{step}", origin, Text(ended, style="bold"))
    return grid


def _marked(history: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    """Return the last lines of the history, and the preemption even if it is older."""
    shown = list(history[-LINES_SHOWN:])
    taken = [line for line in history[:-LINES_SHOWN] if line.kind == TAKEN]
    return [*taken, *shown]
