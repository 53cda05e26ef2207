"""Sections that more than one page shows: the ledger, the attempts, the history and the facts."""

from collections.abc import Mapping, Sequence

from prime_train.pages.charts.svg import ATTEMPT_COLOURS, seconds
from prime_train.pages.markup import row, shown, table
from prime_train.runs.figures import RunFigures, price_text
from prime_train.runs.run import Attempt, HistoryEvent, Run
from prime_train.spec.causes import POLICY
from prime_train.text.formatting import usd
from prime_train.trainers.of_spec import trainer_for

MEANINGS = {
    "provision": "from the create call to the agent's first heartbeat",
    "restore": "setup, verification and restore, until the first step",
    "useful": "steps trained for the first time",
    "recomputed": "steps that were lost and are repeated",
    "after": "steps after training, such as an evaluation",
    "detection": "from the last heartbeat or commit to the fence",
    "teardown": "until the provider confirmed that the machine was gone",
}


def attempt_dot(attempt: int) -> str:
    return f"<span class='dot a{(attempt - 1) % len(ATTEMPT_COLOURS)}'></span>"


def ledger(now: RunFigures) -> str:
    """Return the table of the paid time and the money, by their use."""
    rows = [
        row(
            f"<span class='dot p-{s.name}'></span>{s.name}",
            MEANINGS[s.name],
            s.time,
            s.share,
            s.money,
            numbers=(2, 3, 4),
            unbroken=(0,),
        )
        for s in now.parts
    ]
    total = ("all", "", now.paid, "", usd(now.totals.usd))
    rows.append(row(*total, numbers=(2, 3, 4)).replace("<tr>", "<tr class=sum>", 1))
    return table(("paid for", "what it is", "time", "share", "dollars"), rows, numbers=(2, 3, 4))


def attempts(now: RunFigures) -> str:
    """Return the table of attempts, with a last row for everything else that is paid."""
    rows = []
    for cost in now.costs():
        attempt = cost.current_attempt
        if attempt is None:
            cells = ("", shown(now.others()), "", "", "", cost.time, cost.money, "")
        else:
            steps = (f"{attempt.resumed_step:,}", f"{attempt.last_step:,}", f"{attempt.durable_step:,}")
            number = f"{attempt_dot(attempt.number)}{attempt.number}"
            kind = "spot" if attempt.offer.spot else "on-demand"
            variant = f", {attempt.variant}" if attempt.variant else ""
            cells = (
                number,
                shown(f"{attempt.offer.offer_id}, {kind}, {price_text(attempt)}{variant}"),
                *steps,
                cost.time,
                cost.money,
                shown(_end(attempt)),
            )
        rows.append(row(*cells, numbers=(2, 3, 4, 5, 6), unbroken=(0, 1, 7)))
    head = ("attempt", "machine", "from step", "to step", "durable", "paid", "spent", "ended by")
    return table(head, rows, numbers=(2, 3, 4, 5, 6))


def _end(attempt: Attempt) -> str:
    return POLICY[attempt.cause].title if attempt.cause else "running" if attempt.ended_s is None else "ended"


def history(run: Run, events: Sequence[HistoryEvent]) -> str:
    """Return the table of events, in the given order, each with its time since the launch."""
    rows = [
        row(
            f"+{seconds(event.at_s - run.created_s)}",
            f"{attempt_dot(event.attempt)}{event.attempt}" if event.attempt else "",
            shown(event.kind.replace("_", " ")),
            shown(event.text),
            numbers=(0,),
            unbroken=(1, 2),
        )
        for event in events
    ]
    return table(("time", "attempt", "what", ""), rows, numbers=(0,))


def facts(run: Run, extra: Mapping[str, str]) -> str:
    """Return the table of facts about the run. `extra` adds rows."""
    values = {
        "commit": run.commit or "none",
        "command": trainer_for(run.spec).shown_command(run.spec),
        **extra,
    }
    return table(
        ("", ""),
        [row(shown(name), f"<code>{shown(value)}</code>", unbroken=(0,)) for name, value in values.items()],
    )
