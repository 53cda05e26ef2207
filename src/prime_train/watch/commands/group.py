"""`prime-train watch`: run one more watcher beside any others."""

import os
import signal
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.app.logs import log_to_stderr
from prime_train.environment import STORE
from prime_train.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.watch.context import SweepResult
    from prime_train.watch.stale_runs import Stale, StaleReport


def watch(
    once: Annotated[
        bool, typer.Option("--once", help="Check the runs that are due once, then exit.")
    ] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two checks.")] = 5.0,
    wandb: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY/PROJECT",
            help="Only list the W&B runs that have fallen silent.",
            show_default=False,
        ),
    ] = None,
    stale_min: Annotated[
        float,
        typer.Option(
            min=1, max=10_000, help="With --wandb: minutes without data after which a run counts as silent."
        ),
    ] = 45.0,
) -> Exit:
    """Run an additional watcher.

    Detects lost attempts, fences them and launches new ones. Any number of watchers may run, on any number of
    machines. With --wandb it only reports W&B runs that have fallen silent, whoever launched them, and with
    --once it then exits with code 1 if there is one. W&B may lag by half an hour.
    """
    from prime_train.app.home import Home
    from prime_train.watch.agent_installs import context_with_installer
    from prime_train.watch.loop import sweep_and_install
    from prime_train.watch.loop import watch as watch_until
    from prime_train.watch.stale_runs import Stale, find_stale, watch_stale

    log_to_stderr()
    home = Home.of(os.environ)
    if wandb is not None:

        def find() -> list[Stale]:
            return find_stale(
                home.known_store(), home.providers_here, home.environment, wandb, int(stale_min * 60)
            )

        if once:
            return _report_once(wandb, find())
        return _report_until(watch_stale(find, _until_sigterm(), interval_s=interval))
    if once:
        return _printed(
            sweep_and_install(*context_with_installer(home, home.served.webhook_url, watched=_print))
        )
    typer.echo(f"watching {home.environment.get(STORE) or home.root}")
    watch_until(partial(home.watching, _print), lambda: home.served, _until_sigterm(), interval_s=interval)
    return Exit.OK


def _report_once(where: str, stale: "Sequence[Stale]") -> Exit:
    """Report each silent run of the project `where`, and return OK only if there is none."""
    from prime_train.watch.stale_runs import description

    for one in stale:
        typer.echo(description(one))
    typer.echo(f"{len(stale)} silent in {where}")
    return Exit.FINDINGS if stale else Exit.OK


def _report_until(reports: "Iterable[StaleReport]") -> Exit:
    """Report each run once when it has fallen silent, until there are no more reports."""
    from prime_train.watch.stale_runs import description

    for report in reports:
        for one in report.new:
            typer.echo(description(one))
        if report.error:
            typer.echo(report.error, err=True)
    return Exit.OK


def _until_sigterm() -> Event:
    """Return an event that is set on SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    return ended


def _print(run_id: str, what: str, text: str) -> None:
    typer.echo(f"{run_id} {what} {text}".rstrip())


def _printed(result: "SweepResult") -> Exit:
    """Print the result of a single sweep and return the exit code."""
    typer.echo(f"checked {len(result.looked_at)} runs, took {result.steps} steps")
    if result.blind is not None:
        typer.echo(f"missing heartbeats prove nothing now: {result.blind}")
    if result.provider_error is not None:
        typer.echo(f"provider: {result.provider_error}", err=True)
    return result.exit
