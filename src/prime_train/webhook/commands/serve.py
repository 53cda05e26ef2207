"""`prime-train serve`: run the control plane, webhook and watcher, in one process."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.environment import PUBLIC_URL, STORE
from prime_train.errors import UsageError
from prime_train.text.invocations import DETACHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from prime_train.app.home import Home


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="Port; by default the one used last. 0: any free port, if no run has a machine.",
            show_default=False,
        ),
    ] = None,
    watching: Annotated[bool, typer.Option("--watch/--no-watch", help="Also watch the runs.")] = True,
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            envvar="PRIME_TRAIN_URL",
            help="Public URL that rented machines call.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(min=0.1, max=3600, help="Longest time between two checks of the runs, in seconds."),
    ] = 5.0,
    background: Annotated[
        bool,
        typer.Option("--background", help="Run it in the background until prime-train down, and return."),
    ] = False,
    detached: Annotated[bool, typer.Option(DETACHED, hidden=True)] = False,
) -> None:
    """Run the control plane.

    Serves the webhook and watches the runs until Ctrl-C. It may be killed and started again at any time. With
    --background it outlives the terminal, and its log is the file serve.log in PRIME_TRAIN_HOME
    (~/.prime-train).
    """
    from prime_train.app.home import Home
    from prime_train.app.logs import log_to_stderr
    from prime_train.app.serve import checked_public_url
    from prime_train.app.serve import serve as serve_home
    from prime_train.pages.dashboard.serving import served_here
    from prime_train.providers.configured import default_providers

    home = Home.of({**os.environ, PUBLIC_URL: checked_public_url(public_url)} if public_url else os.environ)
    if background:
        _start(home, host=host, port=port, watching=watching, interval_s=interval)
        return
    serves: Callable[[], None] = _log_to_file(home) if detached else lambda: None
    if not detached:
        log_to_stderr()
    renting = " or ".join(default_providers(home.environment))

    def announce(url: str) -> None:
        serves()
        typer.echo(
            f"serving {home.root} at {url}, {'watching' if watching else 'not watching'}, renting from "
            f"{renting}"
        )

    serve_home(
        home,
        host=host,
        port=port,
        watching=watching,
        interval_s=interval,
        announce=announce,
        pages=served_here(home),
        in_background=detached,
    )


def _log_to_file(home: "Home") -> "Callable[[], None]":
    """Log to the file in the home, and return what to call once the home is served."""
    from prime_train.app.background import LOG
    from prime_train.app.logs import log_to_file

    home.make()
    return log_to_file(home.root / LOG)


def _start(home: "Home", *, host: str, port: int | None, watching: bool, interval_s: float) -> None:
    """Start the control plane in the background; do nothing if the home is served as wanted already."""
    from prime_train.app.background import ensure_served
    from prime_train.app.serve_lock import holder_of
    from prime_train.terminal.background import print_started

    if home.is_remote:
        raise UsageError(
            f"{STORE} names a store that is not in this home, and such a control plane is not started in the "
            "background",
            fix="leave out --background, and let a service manager start it",
        )
    given = ["--host", host, "--interval", f"{interval_s}", *([] if watching else ["--no-watch"])]
    given += ["--port", str(port)] if port is not None else []
    started = ensure_served(home, given)
    if started is not None:
        print_started(home, started)
        return
    serving, holder = home.last_serving(), holder_of(home.lock_file)
    is_other = serving is None or port is not None or serving.public_url != home.public_url(serving.url)
    if is_other and holder is not None:
        raise home.already_served(holder)
    typer.echo(f"a control plane serves {home.root} already{f', at {serving.url}' if serving else ''}")
