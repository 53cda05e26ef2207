"""A control plane inside this process: webhook and watcher, for as long as a `with` lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prime_train.cli.home import Home

if TYPE_CHECKING:
    from prime_train.ports import Watched
    from prime_train.server.serve import Server

INTERVAL_S = 5.0


@contextmanager
def control_plane(
    home: Home, *, port: int | None = None, interval_s: float = INTERVAL_S, watched: "Watched | None" = None
) -> "Iterator[Server]":
    """Serves `home` on a port (0: any; None: its last, or any). Raises PermanentError where the port is taken. Pods go on when it ends."""
    from prime_train.server.serve import Server

    server = Server(home.desk(), port=home.port_meanwhile() if port is None else port)
    with server:
        home.say_serving(server.url)
        server.watch(home.world(home.public_url(server.url), watched=watched), interval_s=interval_s)
        yield server
