"""What is known here when offers are compared for a config that is not launched yet: the same that a watcher
will know.
"""

from dataclasses import replace

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.configs.loader import of_config
from prime_train.errors import ExternalError
from prime_train.market.left_of_run import market_of
from prime_train.market.observations import NOTHING_SEEN, Observations, observations
from prime_train.market.quotes import NO_STORE, Market
from prime_train.planning.cost_forecast import forecast_of
from prime_train.runs.forecast import Forecast
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Probe, Run
from prime_train.spec.reader import Config
from prime_train.spec.spec import RunSpec


def seen_here(home: Home) -> Observations | None:
    """Return what the runs in the store of this home tell of machines; None if they cannot be read."""
    if not home.has_runs and not home.elsewhere:
        return NOTHING_SEEN  # Reading must not create a home if there is none.
    try:
        return observations(home.store().list_runs(), wall_s())
    except ExternalError:  # offers can be compared without it, and the table says so
        return None


def config_forecast(read: Config, spec: RunSpec) -> Forecast:
    """Return what is estimated of a config that is launched as `spec`."""
    return forecast_of([subject for _, subject in of_config(replace(read, spec=spec)).judged])


def market_for(
    spec: RunSpec,
    forecast: Forecast,
    seen: Observations | None,
    *,
    from_step: int | None = None,
    probe: Probe | None = None,
    why_unread: str = NO_STORE,
) -> Market:
    """Return what offers are compared by for a launch of the config now. `seen`: None if it cannot be read,
    `why_unread` in words; `from_step`: the step of the checkpoint that the run starts from; `probe`: what the
    run measures before it ends.
    """
    now_s = wall_s()
    resume = ResumePoint(step=from_step, attempt=0, key="") if from_step is not None else None
    run = Run(spec.name, spec, created_s=now_s, forecast=forecast, resume=resume, probe=probe)
    return replace(
        market_of(run, seen or NOTHING_SEEN, now_s, has_store=seen is not None), why_unread=why_unread
    )
