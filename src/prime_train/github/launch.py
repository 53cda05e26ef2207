"""Launch a run for a job of a code repository."""

from collections.abc import Callable
from dataclasses import dataclass

from prime_train.app.home import Home
from prime_train.errors import PermanentError, UsageError
from prime_train.exit_codes import Exit
from prime_train.github.api import GitHub
from prime_train.github.deployments import deployment_of, new_deployment
from prime_train.github.launch_request import LaunchRequest
from prime_train.github.runs import launch_once
from prime_train.launch.allowed import Allowed
from prime_train.launch.dry_run import ranking
from prime_train.launch.launch_config import Checked, checked
from prime_train.launch.probe import ProbeLimits, TooFewSteps
from prime_train.market.ranking import Ranking
from prime_train.planning.cost_seen import measured_kinds
from prime_train.planning.market_for_run import market_for, seen_here
from prime_train.runs.run import Origin
from prime_train.runs.store import RunRecord
from prime_train.watch.port import Watched
from prime_train.watch.sweeps import sweep


@dataclass(frozen=True)
class Launched:
    """A run as it is after a request to launch it. `is_new`: False if an earlier request has launched it.
    `waits_for_watcher`: whether it is new, and its machine is left to the control plane's watcher, because
    its provider cannot be called from here.
    """

    record: RunRecord
    is_new: bool
    waits_for_watcher: bool


@dataclass(frozen=True)
class Unneeded:
    """Why a probe that nobody asked for is not launched."""

    why: str


def launch_from(
    home: Home,
    github: GitHub,
    request: LaunchRequest,
    what: Checked,
    origin: Origin,
    *,
    again: bool,
    watched: Callable[[], Watched],
    warn: Callable[[str], None],
) -> Launched:
    """Queue the run, record its deployment on GitHub, and try once to rent its machine if its provider can be
    called from here.

    `watched` is called when the run is queued, and returns a function that is called with the events of runs
    until this function returns. `warn` is called if the deployment cannot be recorded, for example because
    the token lacks the permission; the run is launched anyway. Raises Unfit, UsageError and ExternalError as
    `launch_once` and `sweep` do.
    """
    run_id, created = launch_once(
        home, what, origin, again=again, deployment=lambda run_id: _deployment(github, run_id, request, warn)
    )
    is_rented_here = created is not None and home.calls_providers_of(created.spec)
    if is_rented_here:
        sweep(home.watching(watched()))
    record = home.store().load(run_id)
    if record is None:
        raise UsageError(f"{run_id} is not in the store", fix="run the job again", code=Exit.EXTERNAL_FAILED)
    return Launched(record, created is not None, created is not None and not is_rented_here)


def offers_from_here(home: Home, what: Checked) -> Ranking | None:
    """Return the offers as a launch would rank them now, or None if neither the control plane nor this job
    can ask the run's provider. Raises ExternalError if the provider does not answer.
    """
    try:
        return ranking(home, what)
    except PermanentError:
        if home.calls_providers_of(what.spec):
            raise
        return None


def checked_request(
    home: Home,
    request: LaunchRequest,
    *,
    name: str | None,
    start_from: str | None,
    probe: ProbeLimits | None,
    dry_run: bool = False,
) -> Checked | Unneeded:
    """Return the checked config of the request; or why its probe is not needed, if nobody asked for it.
    Raises what `checked` raises.
    """
    try:
        # What would be rented is shown of any script.
        allowed = Allowed(without_rehearsal=dry_run)
        what = checked(home, request.config, name=name, start_from=start_from, probe=probe, allowed=allowed)
    except TooFewSteps as error:
        if not request.by_itself:
            raise
        return Unneeded(str(error))
    known = _measured_here(home, what) if request.by_itself else ""
    return Unneeded(f"its steps were measured before: {known}") if known else what


def _measured_here(home: Home, what: Checked) -> str:
    """Return in words what earlier runs or probes of the config have measured; empty if nothing, or if the
    store cannot be read.
    """
    seen = seen_here(home)
    found = measured_kinds(market_for(what.spec, what.forecast, seen)) if seen is not None else ()
    return "; ".join(one.text for one in found)


def _deployment(
    github: GitHub, run_id: str, request: LaunchRequest, warn: Callable[[str], None]
) -> int | None:
    """Return the id of the run's deployment, created if necessary; None if GitHub refuses."""
    try:
        return deployment_of(github, run_id) or new_deployment(
            github, run_id, request.commit, f"{request.config}"
        )
    except PermanentError as error:
        warn(f"the deployment could not be recorded on GitHub: {error}")
        return None
