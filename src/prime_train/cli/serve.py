"""`prime-train serve`: run the control plane, webhook and watcher, in one process."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from prime_train.control_plane.wiring.home import Home

BUCKET_S_MAX = 10.0


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port; without it, the one served last. 0: any, if no run has a machine.", show_default=False),
    ] = None,
    watching: Annotated[bool, typer.Option("--watch/--no-watch", help="Watch the runs, too.")] = True,
    public_url: Annotated[
        str | None, typer.Option("--public-url", envvar="PRIME_TRAIN_URL", help="What rented machines call.", show_default=False)
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Longest time between two looks, in seconds.")] = 5.0,
) -> None:
    """Be the control plane.

    Serves the webhook and watches the runs, until Ctrl-C. May be killed and started again at any time.
    """
    from prime_train.control_plane.server.serve import run_server, url_of
    from prime_train.control_plane.wiring.embedded import refuse_unheard
    from prime_train.control_plane.wiring.home import Home
    from prime_train.control_plane.wiring.logs import log_to_stderr
    from prime_train.control_plane.wiring.pod_keys import try_role
    from prime_train.control_plane.wiring.providers import PUBLIC_URL, STORE, default_provider
    from prime_train.dashboard import served_here

    home = Home.of({**os.environ, PUBLIC_URL: _checked(public_url)} if public_url else os.environ)
    if home.elsewhere:
        raise UsageError(f"the control plane is elsewhere, at {home.elsewhere}", fix=f"unset {STORE} to serve from here")
    log_to_stderr()
    with home.serving_alone():  # a second webhook would give new pods its own address, which stops working when it ends
        number = _number(home, host, port)
        renting = default_provider(home.environment)
        public = home.public_url(url_of(host, number))
        refuse_unheard(home, public)

        def announce(url: str) -> None:
            home.say_serving(url)
            typer.echo(f"serving {home.root} at {url}, {'watching' if watching else 'not watching'}, renting from {renting}")
            _say_unset_secrets(home)

        _make_bucket(home)
        context = home.context(public, watched=_log) if watching else None
        webhook = home.webhook(public, watches=watching)
        if webhook.lend is not None:
            try_role(webhook.lend)
        _try_bucket(home)
        home.catch_up()
        run_server(webhook, context, host=host, port=number, interval_s=interval, announce=announce, pages=served_here(home))


def _checked(url: str) -> str:
    from urllib.parse import urlsplit

    from prime_train.adapters.http import is_safe

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise UsageError(f"--public-url {url!r} is no address such as https://train.example.org")
    if not is_safe(url):
        fix = "serve it by https, as by a proxy before it, and name that address: https://..."
        raise UsageError(f"--public-url is {url!r}: what machines are told there, secrets among it, could be read on its way", fix=fix)
    return url


def _say_unset_secrets(home: "Home") -> None:
    import logging

    from prime_train.core.access.run_secrets import VARIABLE, refused

    log, allowed, kept = logging.getLogger("prime_train.serve"), home.run_secrets, home.secrets
    for run in (run for run in home.store().list_runs() if not run.is_over):
        withheld = refused(run.spec.secrets, allowed)
        unset = [name for name in run.spec.secrets if name not in kept and name not in withheld]
        if unset:
            said = "%s names secrets that are not set here: %s; set them and serve again, until then its attempts cannot start"
            log.warning(said, run.run_id, ", ".join(unset))
        if withheld:
            said = "%s names secrets that runs may not have here: %s; %s has those that they may, until then its attempts cannot start"
            log.warning(said, run.run_id, ", ".join(withheld), VARIABLE)


def _log(run_id: str, what: str, text: str) -> None:
    import logging

    logging.getLogger("prime_train.watch").info("%s %s %s", run_id, what, text)


def _make_bucket(home: "Home") -> None:
    """Create or check the bucket. If it does not answer, only a warning is logged, because it may recover. Raises UsageError if it is
    another bucket than the one known by this address."""
    import logging

    from prime_train.ports import OutsideError

    try:
        home.make_bucket()
    except OutsideError as error:
        log = logging.getLogger("prime_train.serve")
        log.warning("whether the bucket %s is the one that is known cannot be told now: %s", home.bucket_url, error)


def _try_bucket(home: "Home") -> None:
    """List the bucket once, so that a problem is not first found by a rented machine. A failure is only logged, because the bucket may
    recover."""
    import logging
    import threading

    from prime_train.core.keys import RUNS
    from prime_train.ports import OutsideError

    bucket = home.bucket()
    told = [f"no answer within {BUCKET_S_MAX:.0f} s"]

    def look() -> None:
        try:
            any(True for _ in bucket.list(RUNS))
        except OutsideError as error:
            told[:] = [str(error)]
        else:
            told.clear()

    looking = threading.Thread(target=look, name="bucket", daemon=True)
    looking.start()
    looking.join(BUCKET_S_MAX)
    for why in told[:1]:
        log = logging.getLogger("prime_train.serve")
        log.warning("the bucket %s cannot be used now: %s; until it can, no machine starts and nothing is saved", home.bucket_url, why)


def _number(home: "Home", host: str, port: int | None) -> int:
    """Return the port to listen on. Another port than the last one is used only if `port` asks for it, and an arbitrary one (0) only while
    no machine uses a known address."""
    if port is None or (port == 0 and home.last_serving() is not None and home.store().lease_statuses()):
        return home.port()
    return port or _free_port(host)


def _free_port(host: str) -> int:
    """Return a free port. It is chosen before the server starts, because the watcher's canary needs the address."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
