"""Outages of the control plane with 200 runs: how many runs are restarted needlessly, and how soon machines
that are really lost are found.
"""

import statistics
import time

from rich.console import Console
from rich.table import Table

from tests.simulation.outage import Outage, OutageStage, Played, What

TO_BEAT = {10.0: "4.5"}
"""Published percentages of restarted runs, with a breaker and without a canary."""
MINUTES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
LOST = 0.05
OTHERS = (
    Outage(What.UNHEARD, 10, canary=False),
    Outage(What.UNHEARD, 20, canary=False),
    Outage(What.UNHEARD, 30, canary=False),
    Outage(What.HALF, 10),
    Outage(What.CUT, 10),
    Outage(What.CUT, 20),
    Outage(What.CUT, 30),
    Outage(What.STEPS, 30),
    Outage(What.TWO, 30),
    Outage(What.FLAPS, 30),
    Outage(What.CUT, 30, also=What.UNANSWERED),
    Outage(What.CUT, 30, also=What.PROVIDER),
    Outage(What.STEPS, 30, also=What.STORE),
    Outage(What.STORE, 10),
    Outage(What.STORE, 10, lost=LOST),
    Outage(What.WATCHERS, 60),
    Outage(What.WATCHERS, 60, lost=LOST),
    Outage(What.PROVIDER, 60),
    Outage(What.PROVIDER, 60, lost=LOST),
)
WEBHOOK = (What.UNHEARD, What.REFUSED, What.UNANSWERED)
ALL = (
    *(Outage(what, minutes, lost=lost) for what in WEBHOOK for lost in (0.0, LOST) for minutes in MINUTES),
    *OTHERS,
)
QUICK = tuple(outage for outage in ALL if outage.minutes in (10, 60))


def row(outage: Outage, played: Played) -> list[str]:
    both = (outage.what, *((outage.also,) if outage.also is not None else ()))
    name = " + ".join(what.value for what in both) + ("" if outage.canary else " *")
    goal = TO_BEAT.get(outage.minutes, "-") if outage.what in WEBHOOK else "-"
    found = [_spread(played.gone_found_s), _spread(played.frozen_found_s)] if outage.lost else ["-", "-"]
    restarted = f"{100 * played.restarted_share:.1f}"
    return [
        name,
        f"{outage.minutes:.0f}",
        f"{100 * outage.lost:.0f}",
        restarted,
        goal,
        str(played.begun),
        f"{played.lost_s / 60:.0f}",
        *found,
    ]


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.0f} / {max(seconds):.0f}" if seconds else "none"


def main(quick: bool = False) -> None:
    headings = (
        "outage",
        "min",
        "lost %",
        "restarted %",
        "to beat",
        "begun",
        "lost min",
        "gone: s",
        "frozen: s",
    )
    table = Table(*headings, title="200 runs, two watchers that look every 15 s", padding=(0, 0))
    started_s = time.monotonic()
    for outage in QUICK if quick else ALL:
        played = OutageStage(outage).play()
        assert played.missed == 0
        assert played.doubled == []
        table.add_row(*row(outage, played))
    console = Console()
    console.print(table)
    console.print("*: no canary. restarted: runs that lost a machine that was well; begun: attempts because")
    console.print("of that; lost min: minutes of training not done, or done again, in all; gone: from a real")
    console.print("loss that the provider knew of (or from the end, where nobody could see it) to the fence,")
    console.print("median / most; frozen: of one that it did not know of, from the end of the outage (before")
    console.print("it, where the budget ended the run). No run had two machines, and none was lost.")
    console.print(f"{time.monotonic() - started_s:.0f} s")


if __name__ == "__main__":
    main()
