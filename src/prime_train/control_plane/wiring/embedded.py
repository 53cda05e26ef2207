"""A control plane inside this process: webhook and watcher, for the duration of a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.providers import STORE
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.control_plane.pages import Pages
    from prime_train.control_plane.server.serve import Server
    from prime_train.ports import Watched

INTERVAL_S = 5.0
UNSERVED = (
    "no control plane serves this home: nothing is replaced, and no budget is looked after; start, and leave running: prime-train serve"
)


def is_left_alone(home: Home) -> bool:
    """Return whether no control plane serves this home now. A home with a remote store is served there."""
    return not home.environment.get(STORE) and home.serving() is None


def refuse_unheard(home: Home, public_url: str) -> None:
    """Raise UsageError if machines of this home's runs call another address than `public_url`: their heartbeats would not arrive, and a
    watcher would replace them all."""
    last = home.last_serving()
    if last is None or last.public_url == public_url:
        return
    count = len(home.store().lease_statuses())
    if count:
        machines = f"{count} machine{' calls' if count == 1 else 's call'} {last.public_url}"
        raise UsageError(
            f"{machines}; served at {public_url} they would be taken for silent and replaced",
            fix="serve at that address again (free its port, if something else has it), or end their runs first: "
            "prime-train stop --now RUN for each, then prime-train watch --once",
            code=Exit.OUTSIDE_REFUSED,
        )


@contextmanager
def control_plane(
    home: Home, *, port: int | None = None, interval_s: float = INTERVAL_S, watched: "Watched | None" = None, pages: "Pages | None" = None
) -> "Iterator[Server]":
    """Serve `home` on a port (0: any; None: its last, or any) during the block. Pods keep running when it ends.

    `pages`: the dashboard, if there is to be one.

    Raises PermanentError if the port is taken, UsageError if machines call another address, or another process serves the home.
    """
    from prime_train.control_plane.server.serve import Server, url_of

    with home.serving_alone():
        number = home.port_meanwhile() if port is None else port
        refuse_unheard(home, home.public_url(url_of("127.0.0.1", number)))
        home.make_bucket()
        webhook = home.webhook()
        home.catch_up()
        with Server(webhook, port=number, pages=pages) as server:
            home.say_serving(server.url)
            server.watch(home.context(home.public_url(server.url), watched=watched), interval_s=interval_s)
            yield server
