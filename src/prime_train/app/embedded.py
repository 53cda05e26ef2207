"""A control plane inside this process: webhook and watcher, for the duration of a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.pages.dashboard.requests import Pages
from prime_train.watch.port import Watched

if TYPE_CHECKING:
    from prime_train.webhook.server.serve import Server

INTERVAL_S = 5.0
_START = Call(Operation.SERVE, options=(Option(SettingAdvice.BACKGROUND),))
UNSERVED = Advice(
    "no control plane serves this home, so runs are not watched: no machine is replaced or given back; start "
    "one: ",
    _START,
)
UNSERVED_STOP = Advice(
    "no control plane serves this home, so a run that was asked to stop continues until one does; start one: ",
    _START,
)


def refuse_unheard(home: Home, public_url: str) -> None:
    """Raise UsageError if machines of this home's runs call another address than `public_url`: their
    heartbeats would not arrive, and a watcher would replace them all.
    """
    last = home.last_serving()
    if last is None or last.public_url == public_url:
        return
    count = len(home.store().lease_statuses())
    if count:
        machines = f"{count} machine{' sends' if count == 1 else 's send'} heartbeats to {last.public_url}"
        fix = Advice(
            "serve at that address again (free its port if another process uses it), or end their runs "
            "first: ",
            *(Call(Operation.CANCEL, "RUN"), " for each, then ", Call(Operation.SWEEP)),
        )
        message = f"{machines}; if this home is served at {public_url}, they count as silent and are replaced"
        raise UsageError(message, fix=fix, code=Exit.EXTERNAL_REFUSED)


@contextmanager
def control_plane(
    home: Home,
    *,
    port: int | None = None,
    interval_s: float = INTERVAL_S,
    watched: Watched | None = None,
    pages: Pages | None = None,
) -> "Iterator[Server]":
    """Run a control plane for `home` during the block. Pods keep running when the block ends.

    `port`: the port of the webhook; 0: any free port; None: the last port of this home, or any if there is
    none. `pages`: the dashboard; None: it is not served.

    Raises PermanentError if the port is taken, UsageError if machines call another address, or another
    process serves the home.
    """
    from prime_train.webhook.server.serve import Server, url_of

    with home.serving_alone():
        number = home.port_meanwhile() if port is None else port
        refuse_unheard(home, home.public_url(url_of("127.0.0.1", number)))
        home.make_bucket()
        webhook = home.webhook()
        home.catch_up()
        with Server(webhook, port=number, pages=pages) as server:
            home.write_serving(server.url)
            server.watch(
                home.context(home.public_url(server.url), watched=watched, serves=True), interval_s=interval_s
            )
            yield server
