"""The list of runs, as a page."""

from collections.abc import Sequence

from prime_train.advice import Call, Operation
from prime_train.pages.document import Live, document
from prime_train.pages.markup import none, pill, row, section_html, shown, table
from prime_train.runs.run import RunState
from prime_train.status.run_status import RunStatus
from prime_train.text.formatting import span
from prime_train.text.invocations import command


def runs_page_html(
    runs: Sequence[RunStatus], now_s: int, live: Live, *, left_out: int = 0, unreadable: int = 0
) -> str:
    """Return the complete page: `runs` in the given order, each with a link to its page. `now_s`: the store's
    time. `left_out`: how many older runs are not listed; `unreadable`: how many stored values cannot be read,
    so that runs may be missing.
    """
    going_on = sum(one.ended_s is None for one in runs)
    counts = [f"{len(runs):,} run{'' if len(runs) == 1 else 's'}", f"{going_on:,} still going"]
    counts += [f"{left_out:,} older ones not listed"] if left_out else []
    counts += (
        [f"{unreadable:,} stored values cannot be read: {command(Call(Operation.STATUS))} names them"]
        if unreadable
        else []
    )
    head = f"<h1>Runs</h1><p class=why>{shown(', '.join(counts))}</p>"
    listed = table(
        ("run", "state", "step", "durable", "spent", "last heartbeat", "age", "tags"),
        [_row(one, now_s) for one in runs],
        numbers=(2, 3, 4, 5, 6),
    )
    body = section_html("runs", "", head + (listed if runs else none("There are no runs yet.")))
    return document("prime-train: runs", body, live)


def _row(one: RunStatus, now_s: int) -> str:
    return row(
        f"<a href='runs/{shown(one.run)}'>{shown(one.run)}</a>",
        pill(RunState(one.state)),
        shown(one.progress),
        f"{one.durable_step:,}" if one.durable_step else "-",
        shown(one.money),
        shown(one.heartbeat),
        span(now_s - one.created_s),
        shown(", ".join(one.tags)),
        numbers=(2, 3, 4, 5, 6),
        unbroken=(0,),
    )
