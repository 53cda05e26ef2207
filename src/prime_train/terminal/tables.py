"""Tables of runs, attempts, ledger and history for the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.runs.figures import AttemptCost, RunFigures, price_text
from prime_train.runs.run import HistoryEvent, RunState
from prime_train.status.run_status import RunStatus, title_of
from prime_train.terminal.columns import Column, Fitting
from prime_train.text.formatting import span, usd

LINES_SHOWN = 8
_COLOURS = {
    RunState.SUCCEEDED: "green",
    RunState.FAILED: "red",
    RunState.STOPPED: "yellow",
    RunState.CANCELLED: "yellow",
}
_COLOURS |= {RunState.TRAINING: "cyan", RunState.QUEUED: "magenta"}


def all_runs(found: Sequence[RunStatus]) -> RenderableType:
    """Return a table with one row for each run. Id, state, step and spending are always shown in full; other
    columns are shortened or dropped on a narrow terminal.
    """

    def column(name: str, cells: Iterable[str], rank: int = 0, short: Iterable[str] | None = None) -> Column:
        return Column(name, texts(cells), rank, texts(short) if short is not None else None)

    return Fitting(
        (
            column("run", (one.run for one in found)),
            Column("state", tuple(state_text(one.state, archived=one.archived) for one in found)),
            column("attempt", (str(one.attempt) for one in found), 3),
            column("step", (one.progress for one in found)),
            column("last heartbeat", (one.heartbeat for one in found), 2),
            column("spent", (one.money for one in found)),
            column(
                "restarts", (one.causes for one in found), 1, (str(one.figures.restarts) for one in found)
            ),
            column("durable step", (f"{one.durable_step:,}" for one in found), 4),
            column("next check", (one.next_check for one in found), 5),
        )
    )


def texts(cells: Iterable[str]) -> tuple[Text, ...]:
    return tuple(Text(cell) for cell in cells)


def one_run(one: RunStatus, history: Sequence[HistoryEvent]) -> RenderableType:
    """Return everything about one run: its state, attempts, ledger and latest history, the criteria of its
    config, judged, and its results.
    """
    rows = Table.grid(padding=(0, 3))
    state = Text.assemble(state_text(one.state, archived=one.archived), f"  {one.why}")
    for name, value in (
        ("run", Text(one.run)),
        ("state", state),
        *((name, Text(text)) for name, text in one.facts),
    ):
        rows.add_row(Text(name, style="bold"), value)
    parts: list[RenderableType] = [rows]
    if one.figures.run.attempts:
        parts += [Text(), attempts(one.figures), Text(), ledger_table(one.figures)]
    return Group(*parts, Text(), lines(history[-LINES_SHOWN:], one.created_s))


def state_text(state: str, *, archived: bool = False) -> Text:
    return Text(
        f"{state}, archived" if archived else state, style=f"bold {_COLOURS.get(RunState(state), 'blue')}"
    )


def attempts(now: RunFigures) -> RenderableType:
    """Return a table with one row for each attempt, and one for other machines that are paid for."""
    made = now.costs()
    return Fitting(
        (
            Column(
                "attempt",
                texts(
                    str(cost.current_attempt.number) if cost.current_attempt is not None else ""
                    for cost in made
                ),
            ),
            Column(
                "machine",
                texts(_machine(cost, now) for cost in made),
                2,
                texts(_offer(cost) for cost in made),
            ),
            Column(
                "from step",
                texts(
                    f"{cost.current_attempt.resumed_step:,}" if cost.current_attempt is not None else ""
                    for cost in made
                ),
                4,
            ),
            Column(
                "to step",
                texts(
                    f"{cost.current_attempt.last_step:,}" if cost.current_attempt is not None else ""
                    for cost in made
                ),
            ),
            Column(
                "durable",
                texts(
                    f"{cost.current_attempt.durable_step:,}" if cost.current_attempt is not None else ""
                    for cost in made
                ),
                5,
            ),
            Column("paid", texts(cost.time for cost in made), 3),
            Column("spent", texts(cost.money for cost in made)),
            Column(
                "ended by",
                texts(title_of(_cause(cost)) for cost in made),
                1,
                texts(_cause(cost).replace("_", " ") for cost in made),
            ),
        )
    )


def _machine(cost: AttemptCost, now: RunFigures) -> str:
    attempt = cost.current_attempt
    if attempt is None:
        return now.others()
    variant = f", {attempt.variant}" if attempt.variant else ""
    return f"{_offer(cost)} at {price_text(attempt)}{variant}"


def _offer(cost: AttemptCost) -> str:
    return cost.current_attempt.offer.offer_id if cost.current_attempt is not None else "others"


def _cause(cost: AttemptCost) -> str:
    return (
        cost.current_attempt.cause.value
        if cost.current_attempt is not None and cost.current_attempt.cause is not None
        else "-"
    )


def ledger_table(now: RunFigures) -> RenderableType:
    """Return a table of what the paid time was spent on."""
    table = Table("paid for", "time", "share", "dollars", box=None, pad_edge=False)
    for part in now.parts:
        table.add_row(part.name, part.time, part.share, part.money)
    table.add_row(Text("all", style="bold"), now.paid, "", Text(usd(now.totals.usd), style="bold"))
    return table


def lines(history: Sequence[HistoryEvent], start_s: int) -> RenderableType:
    """Return the history as lines, each with the time since the launch."""
    table = Table.grid(padding=(0, 2))
    for line in history:
        stamp = Text(f"+{span(line.at_s - start_s)}", style="dim")
        table.add_row(
            stamp,
            f"e{line.attempt}" if line.attempt else "",
            Text(line.kind.replace("_", " "), style="bold"),
            Text(line.text),
        )
    return table
