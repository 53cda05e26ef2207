"""A link that opens the dashboard for some hours."""

from dataclasses import dataclass

from prime_train.control_plane.wiring.home import Home
from prime_train.core.access.dashboard_token import HOURS_MAX, dashboard_token
from prime_train.core.advice import Advice, Call, Operation
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.operations.run_lookup import find

HOURS_MIN = 0.01


@dataclass(frozen=True)
class DashboardLink:
    """A link to the dashboard. `url` contains the token, which gives access to the pages until `until_s`, by the store's time. `is_served`:
    whether a control plane serves the home now."""

    url: str
    until_s: int
    is_served: bool


def dashboard_link(home: Home, *, hours: float, run: str | None = None) -> DashboardLink:
    """Return a link to the list of runs, or to the page of the run that `run` stands for. Raises UsageError if `hours` are out of range,
    there is no such run, or nothing has served the home yet, and ExternalError if the store does not answer."""
    if not HOURS_MIN <= hours <= HOURS_MAX:
        raise UsageError(f"a link cannot be valid for {hours:g} hours", fix=f"use at most {HOURS_MAX}", code=Exit.USAGE)
    serving = home.last_serving()
    if serving is None:
        fix = Advice("start, and leave running: ", Call(Operation.SERVE))
        raise UsageError("no control plane has served this home yet, so its pages have no address", fix=fix)
    store = home.store()
    path = f"runs/{find(store, run).run.run_id}" if run is not None else ""
    until_s = store.now_s() + int(hours * 3600)
    url = f"{serving.public_url.rstrip('/')}/{path}?token={dashboard_token(home.master(), until_s)}"
    return DashboardLink(url, until_s, is_served=home.is_served)
