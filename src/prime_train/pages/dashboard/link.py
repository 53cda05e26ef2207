"""A link that opens the dashboard for some hours."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.serving import Serving
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.runs.dashboard_token import HOURS_MAX, LINK_ID, dashboard_token
from prime_train.runs.lookup import find
from prime_train.runs.store import Store

HOURS_MIN = 0.01
TRIES_MAX = 10


@dataclass(frozen=True)
class DashboardLink:
    """A link to the dashboard. `url` contains the token, which gives access to the pages until `until_s`, by
    the store's time. `is_served`: whether a control plane serves the home now; `link_id`: by which it can be
    revoked.
    """

    url: str
    until_s: int
    is_served: bool
    link_id: str


def dashboard_link(
    open_store: Callable[[], Store],
    serving: Serving,
    read_master: Callable[[], bytes],
    *,
    hours: float,
    run: str | None = None,
) -> DashboardLink:
    """Return a link to the list of runs, or to the page of the run that `run` stands for. The store and the
    master key are asked for only once something has served, because that makes them where there are none.

    Raises UsageError if `hours` are out of range, there is no such run, or nothing has served the home yet,
    and ExternalError if the store does not answer.
    """
    if not HOURS_MIN <= hours <= HOURS_MAX:
        raise UsageError(
            f"a link cannot be valid for {hours:g} hours", fix=f"use at most {HOURS_MAX}", code=Exit.USAGE
        )
    if serving.last is None:
        fix = Advice("start one: ", Call(Operation.SERVE, options=(Option(SettingAdvice.BACKGROUND),)))
        raise UsageError("no control plane has served this home yet, so its pages have no address", fix=fix)
    store = open_store()
    path = f"runs/{find(store, run).run.run_id}" if run is not None else ""
    until_s = store.now_s() + int(hours * 3600)
    link_id, generation = secrets.token_hex(4), store.watch().links_generation
    token = dashboard_token(read_master(), until_s, link_id, generation)
    url = f"{serving.last.public_url.rstrip('/')}/{path}?token={token}"
    return DashboardLink(url, until_s, is_served=serving.is_served, link_id=link_id)


def revoke_links(store: Store, link_id: str | None) -> None:
    """Revoke the link with this id, or all links that were ever made (None). Raises UsageError for a text
    that is no id, and ExternalError if the store does not answer.
    """
    if link_id is not None and LINK_ID.fullmatch(link_id) is None:
        fix = "it was printed with the link, and is the part of its token between the hyphens"
        raise UsageError(f"{link_id[:50]!r} is not the id of a link", fix=fix, code=Exit.USAGE)
    for _ in range(TRIES_MAX):
        watch, now_s = store.watch(), store.now_s()
        revoked = {each: until_s for each, until_s in watch.revoked_links.items() if until_s > now_s}
        if link_id is not None:
            after = replace(watch, revoked_links={**revoked, link_id: now_s + HOURS_MAX * 3600})
        else:
            after = replace(watch, revoked_links={}, links_generation=watch.links_generation + 1)
        if store.save_watch(replace(after, version=watch.version + 1), version=watch.version):
            return
    raise UsageError("the links are being changed by others", fix="try again", code=Exit.EXTERNAL_FAILED)
