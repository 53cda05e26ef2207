"""Run the control plane in this process: the webhook, and unless another watches, the watcher."""

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from prime_train.app.embedded import refuse_unheard
from prime_train.app.home import Home
from prime_train.app.pod_keys import try_role
from prime_train.buckets.keys import RUNS
from prime_train.environment import PUBLIC_URL, STORE
from prime_train.errors import ExternalError, UsageError
from prime_train.http import is_safe
from prime_train.pages.dashboard.requests import Pages
from prime_train.providers.kinds import LOCAL
from prime_train.runs.signing import market_key
from prime_train.spec.access_run_secrets import VARIABLE, refused
from prime_train.text.os_errors import EXHAUSTED, in_words

BUCKET_S_MAX = 10.0
WRITE_AGAIN_S = 5.0
"""Seconds between two tries to write where a control plane serves."""


def serve(
    home: Home,
    *,
    host: str,
    port: int | None,
    watching: bool,
    interval_s: float,
    announce: Callable[[str], None],
    pages: Pages | None,
    in_background: bool = False,
) -> None:
    """Serve the webhook, and with `watching` watch the runs, until SIGINT or SIGTERM. `port`: None: the one
    served last, and `in_background` any other if that is taken and no machine calls it; 0: any, if no run has
    a machine. `announce` is called with the address once it is served; `pages` answers people.

    Raises UsageError if the control plane is elsewhere, another process serves the home, or machines call
    another address.
    """
    from prime_train.webhook.server.serve import run_server, url_of

    if home.elsewhere:
        raise UsageError(
            f"the control plane runs elsewhere, at {home.elsewhere}", fix=f"unset {STORE} to serve from here"
        )
    # a second webhook would give new pods its own address, which stops working when it ends
    with home.serving_alone(in_background=in_background):
        number = _number(home, host, port, may_differ=in_background)
        public = home.public_url(url_of(host, number))
        refuse_unheard(home, public)

        def announced(url: str) -> None:
            _write_serving(home, url)
            _warn_of_unset_secrets(home)
            _warn_of_missing_walls(home)
            _say(announce, url)

        home.policy()  # one that cannot be used is reported now, and not first when a run is launched
        _make_bucket(home)
        context = home.context(public, watched=_log, serves=True) if watching else None
        webhook = home.webhook(public, watches=watching)
        if webhook.issue_credentials is not None:
            try_role(webhook.issue_credentials)
        _try_bucket(home)
        home.catch_up()
        run_server(
            webhook, context, host=host, port=number, interval_s=interval_s, announce=announced, pages=pages
        )


def _write_serving(home: Home, url: str) -> None:
    """Write where this process serves. On a full disk it serves all the same, and tries again until the file
    is written.
    """
    try:
        home.write_serving(url)
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise
        message = (
            "%s cannot be written: %s; commands on this machine may not find this control plane until it is"
        )
        logging.getLogger("prime_train.serve").warning(message, home.serve_file, in_words(error))
        threading.Thread(target=_write_later, args=(home, url), name="serve.json", daemon=True).start()


def _write_later(home: Home, url: str) -> None:
    while True:
        time.sleep(WRITE_AGAIN_S)
        with suppress(OSError):
            home.write_serving(url)
            return


def _say(announce: Callable[[str], None], url: str) -> None:
    """Announce the address, unless what it is announced to is on a full disk."""
    try:
        announce(url)
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise


def checked_public_url(url: str) -> str:
    """Return the address that machines call. Raises UsageError if it is not valid or not safe."""
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise UsageError(f"{url!r} is not an address such as https://train.example.org")
    if not is_safe(url):
        fix = "serve it over https, for example behind a proxy, and give that address: https://..."
        raise UsageError(
            f"the public address is {url!r}: over http, data sent to machines, including secrets, could be "
            "read on the way",
            fix=fix,
        )
    return url


def _warn_of_unset_secrets(home: Home) -> None:
    log, allowed, kept = logging.getLogger("prime_train.serve"), home.run_secrets, home.secrets
    for run in (run for run in home.store().list_runs() if not run.is_over):
        withheld = refused(run.spec.secrets, allowed)
        unset = [name for name in run.spec.secrets if name not in kept and name not in withheld]
        if unset:
            message = (
                "%s uses secrets that are not set here: %s; set them and restart serve, because its attempts "
                "cannot start until then"
            )
            log.warning(message, run.run_id, ", ".join(unset))
        if withheld:
            message = (
                "%s uses secrets that runs may not have here: %s; add them to %s, because its attempts "
                "cannot start until then"
            )
            log.warning(message, run.run_id, ", ".join(withheld), VARIABLE)


def _warn_of_missing_walls(home: Home) -> None:
    """Say so if runs may use this machine, and nothing would hide its files from their commands."""
    policy = home.policy()
    why_none = (
        home.why_no_walls() if policy is not None and LOCAL in policy.providers(is_remote=False) else ""
    )
    if why_none:
        message = (
            "commands of runs on provider local can read what you can: %s; install bubblewrap, on a system "
            "that allows namespaces"
        )
        logging.getLogger("prime_train.serve").warning(message, why_none)


def _log(run_id: str, what: str, text: str) -> None:
    logging.getLogger("prime_train.watch").info("%s %s %s", run_id, what, text)


def _make_bucket(home: Home) -> None:
    """Create or check the bucket. If it does not answer, only a warning is logged, because it may recover.
    Raises UsageError if it is another bucket than the one known by this address.
    """
    try:
        home.make_bucket()
    except ExternalError as error:
        log = logging.getLogger("prime_train.serve")
        log.warning(
            "it cannot be checked now whether the bucket %s is the known one: %s", home.bucket_url, error
        )


def _try_bucket(home: Home) -> None:
    """List the bucket once, so that a problem is not first found by a rented machine. A failure is only
    logged, because the bucket may recover.
    """
    bucket = home.bucket()
    problems = [f"no answer within {BUCKET_S_MAX:.0f} s"]

    def look() -> None:
        try:
            any(True for _ in bucket.list(RUNS))
        except ExternalError as error:
            problems[:] = [str(error)]
        else:
            problems.clear()

    thread = threading.Thread(target=look, name="bucket", daemon=True)
    thread.start()
    thread.join(BUCKET_S_MAX)
    for why in problems[:1]:
        log = logging.getLogger("prime_train.serve")
        log.warning(
            "the bucket %s cannot be used now: %s; until it can, no machine starts and no checkpoint is "
            "saved",
            home.bucket_url,
            why,
        )


@dataclass(frozen=True)
class RemoteAccess:
    """How other machines reach a home's control plane. `public_url`: empty if no control plane has served the
    home yet. `key`: whoever has it can launch and stop runs, and so spend money.
    """

    public_url: str
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class MarketAccess:
    """How the jobs of pull requests read what runs show of machines. `public_url`: empty if no control plane
    has served the home yet. `key`: whoever has it can read these figures, and do nothing else.
    """

    public_url: str
    key: str = field(repr=False)


def remote_access(home: Home) -> RemoteAccess:
    """Return how other machines reach the control plane of `home`. A home without a key gets one."""
    return RemoteAccess(_public_url(home), home.master())


def market_access(home: Home) -> MarketAccess:
    """Return how the market is read at the control plane of `home`. A home without a master key gets one."""
    return MarketAccess(_public_url(home), market_key(home.master()))


def _public_url(home: Home) -> str:
    serving = home.last_serving()
    return serving.public_url if serving is not None else ""


def _number(home: Home, host: str, port: int | None, *, may_differ: bool) -> int:
    """Return the port to listen on. Another port than the last one is used only if `port` asks for it; an
    arbitrary one, for which 0 asks, or with `may_differ` the fact that the last one is taken, only while no
    machine uses a known address.
    """
    if port is None and may_differ and not home.environment.get(PUBLIC_URL) and _is_taken(host, home.port()):
        port = 0
    if port is None or (port == 0 and home.last_serving() is not None and home.store().lease_statuses()):
        return home.port()
    return port or _free_port(host)


def _is_taken(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def _free_port(host: str) -> int:
    """Return a free port. It is chosen before the server starts, because the watcher's canary needs the
    address.
    """
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
