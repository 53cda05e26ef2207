"""Runs, attempts, ledger and history as tables on a terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.cli import gpus, saving
from prime_train.cli.columns import Column, Fitting
from prime_train.cli.standing import Standing, standing, title_of
from prime_train.core import ledger
from prime_train.core.amounts import span, usd
from prime_train.core.run import Happening, Run, RunState, with_attempt
from prime_train.picture.facts import shares
from prime_train.ports import Held

LINES_SHOWN = 8
_COLOURS = {RunState.SUCCEEDED: "green", RunState.FAILED: "red", RunState.STOPPED: "yellow", RunState.CANCELLED: "yellow"}
_COLOURS |= {RunState.TRAINING: "cyan", RunState.QUEUED: "magenta"}


def all_runs(found: Sequence[Standing]) -> RenderableType:
    """One row a run. Id, state, step and dollars are always whole; the rest gives way on a narrow terminal."""

    def column(name: str, cells: Iterable[str], rank: int = 0, short: Iterable[str] | None = None) -> Column:
        return Column(name, texts(cells), rank, texts(short) if short is not None else None)

    return Fitting(
        (
            column("run", (one.run for one in found)),
            Column("state", tuple(state_text(one.state) for one in found)),
            column("attempt", (str(one.epoch) for one in found), 3),
            column("step", (one.progress for one in found)),
            column("last beat", (one.beat for one in found), 2),
            column("spent", (one.money for one in found)),
            column("restarts", (one.causes for one in found), 1, (str(len(one.restarts)) for one in found)),
            column("durable step", (f"{one.durable_step:,}" for one in found), 4),
            column("next check", (one.next_check for one in found), 5),
        )
    )


def texts(cells: Iterable[str]) -> tuple[Text, ...]:
    return tuple(Text(cell) for cell in cells)


def one_run(held: Held, history: Sequence[Happening], now_s: int) -> RenderableType:
    """All about one run: how it stands, its attempts, its ledger, what happened last."""
    one = standing(held, now_s)
    rows = Table.grid(padding=(0, 3))
    for name, value in _facts(one):
        rows.add_row(Text(name, style="bold"), value)
    parts: list[RenderableType] = [rows]
    if held.run.attempts:
        parts += [Text(), attempts(_heard(held), now_s), Text(), ledger_table(held.run, now_s)]
    return Group(*parts, Text(), lines(history[-LINES_SHOWN:], held.run.created_s))


def _heard(held: Held) -> Run:
    """The run, its newest attempt with the steps of its last beat and commit: what is saved of it rises only when it ends."""
    attempt, lease = held.run.attempt, held.lease
    if attempt is None or attempt.epoch != lease.epoch:
        return held.run
    step = max(attempt.last_step, lease.beat.step if lease.beat is not None else 0)
    return with_attempt(held.run, replace(attempt, last_step=step, durable_step=max(attempt.durable_step, lease.committed_step)))


def _facts(one: Standing) -> list[tuple[str, RenderableType]]:
    facts: list[tuple[str, RenderableType]] = [("run", one.run), ("state", Text.assemble(state_text(one.state), f"  {one.why}"))]
    if one.want != "run" and one.ended_s is None:
        facts.append(("asked to", one.want))
    facts.append(("step", f"{one.progress}, of which {one.durable_step:,} durable" + _measures(one)))
    if one.ended_s is None:
        facts.append(("last beat", one.beat + (f" ({one.phase})" if one.phase else "")))
        facts.append(("next check", one.next_check))
    facts += saving.facts(one.saving) if one.saving is not None else []
    facts += [("GPUs", gpus.fact(one.gpus))] if one.gpus is not None else []
    facts.append(("spent", f"{one.money}, {span(one.paid_s)} paid"))
    facts.append(("restarts", one.causes))
    if one.pod:
        facts.append(("machine", f"{one.offer}, {one.pod}"))
    facts.append(("commit", one.commit or "none"))
    return facts


def _measures(one: Standing) -> str:
    named = (("loss", one.loss), ("reward", one.reward))
    return "".join(f", {name} {value:.4g}" for name, value in named if value is not None)


def state_text(state: str) -> Text:
    return Text(state, style=f"bold {_COLOURS.get(RunState(state), 'blue')}")


def attempts(run: Run, now_s: int) -> RenderableType:
    """One row an attempt."""
    made = run.attempts
    costs = [ledger.attempt_totals(attempt, now_s) for attempt in made]
    titles = [title_of(attempt.cause.value) if attempt.cause is not None else "-" for attempt in made]
    causes = [attempt.cause.value.replace("_", " ") if attempt.cause is not None else "-" for attempt in made]
    offers = [attempt.offer for attempt in made]
    return Fitting(
        (
            Column("attempt", texts(str(attempt.epoch) for attempt in made)),
            Column(
                "machine",
                texts(f"{offer.offer_id} at {usd(offer.usd_per_hour)}/h" for offer in offers),
                2,
                texts(offer.offer_id for offer in offers),
            ),
            Column("from step", texts(f"{attempt.resumed_step:,}" for attempt in made), 4),
            Column("to step", texts(f"{attempt.last_step:,}" for attempt in made)),
            Column("durable", texts(f"{attempt.durable_step:,}" for attempt in made), 5),
            Column("paid", texts(span(cost.paid_s) for cost in costs), 3),
            Column("spent", texts(usd(cost.usd) for cost in costs)),
            Column("ended by", texts(titles), 1, texts(causes)),
        )
    )


def ledger_table(run: Run, now_s: int) -> RenderableType:
    """Where the paid seconds went."""
    rows = shares(run, now_s)
    paid = ledger.totals(run, now_s)
    table = Table("paid for", "time", "share", "dollars", box=None, pad_edge=False)
    for row in rows:
        part = row.seconds / paid.paid_s if paid.paid_s else 0.0
        table.add_row(row.name, span(row.seconds), f"{part:.0%}", usd(row.usd))
    table.add_row(Text("all", style="bold"), span(paid.paid_s), "", Text(usd(paid.usd), style="bold"))
    return table


def lines(history: Sequence[Happening], start_s: int) -> RenderableType:
    """History, each line with the time since the launch."""
    table = Table.grid(padding=(0, 2))
    for line in history:
        stamp = Text(f"+{span(line.at_s - start_s)}", style="dim")
        table.add_row(stamp, f"e{line.epoch}" if line.epoch else "", Text(line.kind.replace("_", " "), style="bold"), Text(line.text))
    return table
