"""`prime-train serve`: run the control plane, webhook and watcher, in one process."""

import os
from typing import Annotated

import typer

from prime_train.app.logs import log_to_stderr
from prime_train.environment import PUBLIC_URL


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
) -> None:
    """Run the control plane.

    Serves the webhook and watches the runs until Ctrl-C. It may be killed and started again at any time.
    """
    from prime_train.app.home import Home
    from prime_train.app.serve import checked_public_url
    from prime_train.app.serve import serve as serve_home
    from prime_train.pages.dashboard.serving import served_here
    from prime_train.providers.configured import default_providers

    home = Home.of({**os.environ, PUBLIC_URL: checked_public_url(public_url)} if public_url else os.environ)
    log_to_stderr()
    renting = " or ".join(default_providers(home.environment))

    def announce(url: str) -> None:
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
    )
