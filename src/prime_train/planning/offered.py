"""The machines that an estimate is made for: an account's offers of now or, without an account, the list
prices of the catalogue.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.configs.loader import LoadedConfig
from prime_train.errors import ExternalError
from prime_train.estimate import list_prices
from prime_train.estimate.run_costs import RunCosts, run_costs
from prime_train.market.quotes import Market
from prime_train.market.step_times import TimeSource
from prime_train.providers.configured import offers_if_set_up
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.runs.offer import Offer
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from prime_train.text.formatting import usd

log = logging.getLogger(__name__)

DISK_GIB = 10**6
"""The disk of a machine of which only the price is given: enough for every config."""


@dataclass(frozen=True)
class Offered:
    """The offers. `prices`: how old they are, in words, if they are the catalogue's; empty: the providers
    were asked now.
    """

    offers: Sequence[Offer] = ()
    prices: str = ""


@dataclass(frozen=True)
class PricedOffers:
    """What a run takes on each machine. `prices`: where the prices are from, in words; empty: they are those
    of now, or given.
    """

    costs: RunCosts
    prices: str = ""


def offered(environment: Mapping[str, str], hardware: HardwareSpec) -> Offered:
    """Return the offers of the providers that `hardware` names or, if it names none, of those to rent from.
    If none of them is set up here, the catalogue's are returned, which nobody can rent. Nothing is read from
    a home or written to one.

    Raises ExternalError if no provider answers.
    """
    asked = offers_if_set_up(environment, hardware)
    if asked is not None:
        return Offered(asked)
    return listed_prices(hardware)


def listed_prices(hardware: HardwareSpec) -> Offered:
    """Return the catalogue's list prices at the providers that `hardware` names, or at all."""
    listed = list_prices.of_providers(
        list_prices.parse(catalogue_file().read_text("utf-8")), allowed_providers(hardware)
    )
    today = datetime.fromtimestamp(wall_s(), UTC).date()
    return Offered(
        [offer for price in listed for offer in price.offers(hardware.disk_gib)],
        list_prices.age(listed, today),
    )


def offered_here(home: Home, hardware: HardwareSpec) -> Offered:
    """Return the same, for a config that names machines of one's own, these, and of a remote control plane
    those of its providers. Raises ExternalError if no provider answers.
    """
    if is_own_machine(allowed_providers(hardware)):
        return Offered(home.pods().offers(hardware))
    there = offers_there(home, hardware)
    return Offered(there) if there is not None else offered(home.environment, hardware)


def offers_there(home: Home, hardware: HardwareSpec) -> Sequence[Offer] | None:
    """Return the offers of the providers of a remote control plane. None if this machine has its own, or that
    one has none of these providers or cannot be asked, which the log tells: then only the providers that are
    set up here are known.
    """
    if not home.elsewhere:
        return None
    try:
        return home.remote().offers(hardware)
    except ExternalError as error:
        log.warning("the control plane's offers could not be read: %s", error)
        return None


def catalogue_file() -> Path:
    """Return the path of the catalogue, which is installed beside the code that reads it."""
    return Path(list_prices.__file__).with_name(list_prices.FILE)


def priced_offers(
    found: Offered,
    loaded: LoadedConfig,
    market: Market,
    *,
    usd_per_hour: float | None = None,
    spot: bool | None = None,
) -> PricedOffers:
    """Return what the run of a config takes on each of the offers. `usd_per_hour`: on a machine of this price
    instead, which can be preempted if `spot` is set. Where no list price fits, it is the highest price that
    the config allows.
    """
    assert loaded.spec is not None
    hardware = loaded.spec.hardware
    if usd_per_hour is not None:
        return PricedOffers(_at(usd_per_hour, loaded, market, spot))
    costs, most_usd = run_costs(found.offers, hardware, market), hardware.usd_per_hour_max
    if costs.machines or not found.prices or most_usd is None:
        return PricedOffers(costs, found.prices)
    prices = (
        f"the highest price that the config allows, {usd(most_usd)}/h, for want of a list price "
        "that fits; without an account"
    )
    return PricedOffers(_at(most_usd, loaded, market, spot), prices)


def _at(usd_per_hour: float, loaded: LoadedConfig, market: Market, spot: bool | None) -> RunCosts:
    """Return the costs on a machine of the first kind that the config allows, in each of its variants, at
    this price. A config that names no kind of GPU runs on any machine, so any on which it was measured will
    do.
    """
    assert loaded.spec is not None
    measured = [kind for kind, time in market.work.step_times.items() if time.source is TimeSource.MEASURED]
    offers = []
    for _, subject in loaded.judged:
        assert subject.spec is not None
        hardware = subject.spec.hardware
        is_spot = hardware.spot is not Spot.NEVER if spot is None else spot
        name, count = (
            (hardware.gpus[0], hardware.count)
            if hardware.gpus
            else next(iter(measured), ("", hardware.count))
        )
        gpu, _, socket = name.partition(" ")
        offers.append(Offer("", f"{gpu}-{count}", usd_per_hour, is_spot, gpu, count, DISK_GIB, socket=socket))
    changes = {"usd_per_hour_max": None, "spot": Spot.PREFER}
    return run_costs(offers, loaded.spec.hardware.model_copy(update=changes), market)
