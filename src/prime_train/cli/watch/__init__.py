"""`prime-train watch`: run one more watcher beside any others."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from threading import Event

    from prime_train.control_plane.reconcile import Context, SweepResult
    from prime_train.control_plane.wiring.home import Home

PUSH_S_MAX = 900.0
"""How long a single sweep waits for agents to be installed on machines, in seconds. The next watcher installs those that are not done by
then."""


def watch(
    once: Annotated[bool, typer.Option("--once", help="One look at the runs that are due, then leave.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 5.0,
    wandb: Annotated[
        str | None, typer.Option(metavar="ENTITY/PROJECT", help="Only tell which runs of W&B have fallen silent.", show_default=False)
    ] = None,
    stale_min: Annotated[float, typer.Option(min=1, max=10_000, help="With --wandb: silent from so many minutes on.")] = 45.0,
) -> Exit:
    """Be one more watcher.

    Sees what is lost, fences it, launches again. As many watchers as you like, in as many places. With --wandb it tells of runs that nobody
    here has launched, and does nothing; W&B may be half an hour late. Once, it then leaves with 1 if there is one.
    """
    from prime_train.cli.watch.wandb import watch_wandb
    from prime_train.control_plane.wiring.home import Home
    from prime_train.control_plane.wiring.logs import log_to_stderr

    log_to_stderr()
    home = Home.of(os.environ)
    if wandb is not None:
        return watch_wandb(home, wandb, quiet_s=int(stale_min * 60), interval=interval, ended=None if once else _until_sigterm())
    if once:
        return _look_once(home)
    _go_on(home, home.context(_webhook_url(home), watched=_say), interval)
    return Exit.OK


def _until_sigterm() -> "Event":
    """Return an event that is set on SIGTERM."""
    import signal
    import threading

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    return ended


def _webhook_url(home: "Home") -> str:
    """Return the webhook's public URL from the home's serve.json. Raises UsageError if nothing has served the home yet."""
    said = home.last_serving()
    if said is None:
        raise UsageError("no webhook is known: nothing has served this home yet", fix="prime-train serve, or prime-train serve --no-watch")
    return said.public_url


def _say(run_id: str, what: str, text: str) -> None:
    typer.echo(f"{run_id} {what} {text}".rstrip())


def _look_once(home: "Home") -> Exit:
    """Run one sweep. All runs are evaluated before waiting for agents to be installed, which takes minutes."""
    from prime_train.control_plane.reconcile import sweep
    from prime_train.control_plane.wiring.pushes import pushing, tell_failed

    context, pushes = pushing(home, _webhook_url(home), watched=_say)
    try:
        return _told(sweep(context))
    finally:
        if not pushes.wait(PUSH_S_MAX):
            pushes.leave()
        tell_failed(context, pushes)


def _told(swept: "SweepResult") -> Exit:
    """Print the result of a single sweep and return the exit code."""
    typer.echo(f"looked at {len(swept.looked_at)} runs, {swept.steps} steps")
    if swept.blind is not None:
        typer.echo(f"blind: {swept.blind}")
    if swept.provider_error is not None:
        typer.echo(f"provider: {swept.provider_error}", err=True)
        return Exit.OUTSIDE_FAILED
    return Exit.OK


def _go_on(home: "Home", context: "Context", interval: float) -> None:
    """Watch until SIGTERM or Ctrl-C. The webhook's URL is read again regularly, because it may return on another port."""
    import threading

    from prime_train.control_plane.server.loop import Watcher
    from prime_train.control_plane.wiring.providers import STORE

    ended = _until_sigterm()
    typer.echo(f"watching {home.environment.get(STORE) or home.root}")
    while not ended.is_set():
        watcher = Watcher(context, threading.Event(), interval_s=interval)
        watcher.start()
        try:
            while not ended.wait(1.0) and not _moved(home, context):
                pass
        finally:
            watcher.stop()
        context = home.context(_webhook_url(home), watched=_say)


def _moved(home: "Home", context: "Context") -> bool:
    said = home.last_serving()
    return said is not None and said.public_url != context.webhook_url
