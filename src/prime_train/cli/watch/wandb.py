"""`prime-train watch --wandb ENTITY/PROJECT`: report runs that have fallen silent in W&B, and do nothing else."""

from threading import Event

import typer

from prime_train.control_plane.wiring.home import Home, wall_s
from prime_train.core.exit_codes import Exit
from prime_train.operations.stale_runs import Place, asked, find_stale, told
from prime_train.ports import TemporaryError

PAUSE_S_MIN = 60.0
"""The shortest pause between two queries; W&B itself receives updates of a run only every 30 s."""


def watch_wandb(home: Home, where: str, *, quiet_s: int, interval: float, ended: Event | None) -> Exit:
    """Report each silent run once. Without `ended`, query W&B once; otherwise every `interval` seconds, at least `PAUSE_S_MIN`, until
    `ended` is set. Raises the errors of W&B's adapter; when querying repeatedly, a TemporaryError is only printed."""
    place, wandb = Place.of(where), asked(home)
    known: frozenset[str] = frozenset()
    while True:
        try:
            now_s = home.store().now_s() if home.has_runs else wall_s()
            stale = find_stale(home, wandb, place, now_s, quiet_s)
            for one in stale:
                if one.seen.path not in known:
                    typer.echo(told(one, now_s))
            known = frozenset(one.seen.path for one in stale)
        except TemporaryError as error:
            if ended is None:
                raise
            typer.echo(str(error), err=True)
        if ended is None:
            typer.echo(f"{len(known)} silent in {where}")
            return Exit.FINDINGS if known else Exit.OK
        if ended.wait(max(interval, PAUSE_S_MIN)):
            return Exit.OK
