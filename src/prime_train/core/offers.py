"""Selection of offers: which machines fit a run, in which order they are tried, and why the others were left out."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prime_train.core.spec_choices import Spot
from prime_train.core.volumes import why_without

if TYPE_CHECKING:
    from prime_train.core.market.quotes import Market, Quote
    from prime_train.core.market.reputation import Exclusion
    from prime_train.core.spec import HardwareSpec, RunSpec

_GB = re.compile(r"_([0-9]{1,4})GB")


@dataclass(frozen=True)
class Offer:
    """A machine for rent. `usd_per_hour` is the price of the entire box; `gpu` is "" for a machine without one.

    `gpu_gb`: memory of one GPU as advertised (10^9 or 2^30 bytes, makers differ); 0: unknown. `hindrance`: the reason why the provider's
    adapter would not rent this offer; "": none. `socket` (PCIe, SXM5) and `stock` (Low, High) as the provider reports them; "": not
    reported. `usd_per_gib_down`, `usd_per_gib_up`: the price of traffic to and from the machine, which is paid on top; the price per hour
    contains everything else, the disk included. `machine`, `host` (its owner) and `data_center`: the provider's names of what exactly
    would be rented, which are the same on a later day; "": not known before.
    """

    provider: str
    offer_id: str
    usd_per_hour: float
    spot: bool
    gpu: str = ""
    gpu_count: int = 0
    disk_gib: int = 0
    region: str = ""
    gpu_gb: int = 0
    hindrance: str = ""
    socket: str = ""
    stock: str = ""
    usd_per_gib_down: float = 0.0
    usd_per_gib_up: float = 0.0
    machine: str = ""
    host: str = ""
    data_center: str = ""


@dataclass(frozen=True)
class LeftOut:
    offer: Offer
    why: str


@dataclass(frozen=True)
class Ranking:
    """Ranked offers. `best`: those that fit, in the order in which they should be tried; `left_out`: every other offer, with the reason.
    `quotes`: what the run is expected to cost on each of `best`, in the same order; empty if that was not asked for. `basis`: what the
    quotes are based on. `exclusions`: those of `best` that come last because something about them failed before."""

    best: tuple[Offer, ...]
    left_out: tuple[LeftOut, ...]
    quotes: "tuple[Quote, ...]" = ()
    basis: str = ""
    exclusions: "Mapping[Offer, Exclusion]" = field(default_factory=dict)
    length: str = ""
    """Where the number of steps behind the quotes is from, in words; empty: the config says it, or there are no quotes."""

    @property
    def why_none(self) -> str:
        """Why no offer fits; empty if one does."""
        return "" if self.best else self.left_out[0].why if self.left_out else "the provider has no machine for rent"


def memory_gb(offer: Offer) -> int:
    """Return the memory of one GPU in GB: as offered, or else as in the kind's name; 0: unknown."""
    return offer.gpu_gb or memory_gb_in(offer.gpu)


def memory_gb_in(gpu: str) -> int:
    """Return the memory in GB that the name of a kind of GPU tells, such as 80 for H100_80GB; 0: it tells none."""
    named = _GB.search(gpu)
    return int(named[1]) if named else 0


def variant_of(offer: Offer, hardware: "HardwareSpec") -> int | None:
    """Return the place in the list of the first variant that the offer fits; None if there is none."""
    fitting = (
        number
        for number, variant in enumerate(hardware.variants)
        if offer.gpu_count == variant.count and memory_gb(offer) >= variant.gpu_gb_min
    )
    return next(fitting, None)


def variant_title(offer: Offer, hardware: "HardwareSpec") -> str:
    """Return the variant that the offer gets, with its number in the config; empty if the config has none."""
    number = variant_of(offer, hardware)
    return f"variant {number + 1} ({hardware.variants[number].title})" if number is not None else ""


def in_force(spec: "RunSpec", offer: Offer) -> "RunSpec":
    """Return the config as a machine of this offer carries it out: that of its variant, if the config has variants. Raises ValueError if
    the offer fits none of them."""
    if not spec.hardware.variants:
        return spec
    number = variant_of(offer, spec.hardware)
    if number is None:
        raise ValueError(f"offer {offer.offer_id} fits no variant of {spec.name}")
    return spec.variant(number, (offer.gpu,) if offer.gpu else ())


def fits(offer: Offer, hardware: "HardwareSpec") -> str | None:
    """Return None if the offer can carry the run, else one reason why it cannot."""
    if hardware.gpus and offer.gpu not in hardware.gpus:
        return f"has {offer.gpu or 'no GPU'}, but hardware.gpus requires {' or '.join(hardware.gpus)}"
    if hardware.variants and variant_of(offer, hardware) is None:
        memory = f" of {memory_gb(offer)} GB" if memory_gb(offer) else ""
        return f"has {offer.gpu_count} GPUs{memory}, but hardware.variants has {', '.join(one.title for one in hardware.variants)}"
    if hardware.gpus and not hardware.variants and offer.gpu_count != hardware.count:
        return f"has {offer.gpu_count} GPUs, but hardware.count is {hardware.count}"
    if offer.hindrance:
        return offer.hindrance
    if hardware.volumes and (why := why_without(offer.provider)):
        return f"cannot mount hardware.volumes: {why}"
    if hardware.usd_per_hour_max is not None and offer.usd_per_hour > hardware.usd_per_hour_max:
        return f"costs ${offer.usd_per_hour:.2f}/h, above hardware.usd_per_hour_max {hardware.usd_per_hour_max:.2f}"
    if offer.disk_gib < hardware.disk_gib:
        return f"has {offer.disk_gib} GiB of disk, but hardware.disk_gib is {hardware.disk_gib}"
    if hardware.spot is Spot.NEVER and offer.spot:
        return "is spot, but hardware.spot is never"
    if hardware.spot is Spot.ONLY and not offer.spot:
        return "is on-demand, but hardware.spot is only"
    return None


def rank(
    offers: Sequence[Offer],
    hardware: "HardwareSpec",
    *,
    excluded: Collection[str] = (),
    avoided: Collection[str] = (),
    closed: Collection[str] = (),
    on_demand: bool = False,
    market: "Market | None" = None,
) -> Ranking:
    """Return the offers ranked by what the run is expected to cost to its end on them, as `market` knows it. If it does not know how long
    the run takes on each kind of GPU, kinds come in the user's order, and dollars decide within a kind. Without `market`, the order is that
    of the kinds, then spot before on-demand, then the price.

    `excluded` offers (ids of machines that failed) and those of `closed` providers (which refuse all machines at present) come last but are
    kept: if nothing else is left, an offer that failed once is better than none. Offers on which the run would not end by its deadline come
    after those on which it would, and those whose GPUs the training is not expected to fit after both. For `avoided` offers (recently
    preempted) more losses are expected; without `market`, they come after others of the same GPU kind and market only, because a more
    expensive market is not worth avoiding one preemption. What `market` knows to have failed for other runs comes last as well. With
    `on_demand`, spot offers are left out if another one fits.
    """
    reasons = [(offer, fits(offer, hardware)) for offer in offers]
    if on_demand and any(why is None and not offer.spot for offer, why in reasons):
        reasons = [(o, why or ("is spot, and too many spot machines were preempted recently" if o.spot else None)) for o, why in reasons]
    able = [offer for offer, why in reasons if why is None]
    left_out = tuple(LeftOut(offer, why) for offer, why in reasons if why is not None)
    kinds = {kind: place for place, kind in enumerate(hardware.gpus)}
    if market is None:

        def by_kind(o: Offer) -> tuple[object, ...]:
            refused = (o.provider in closed, o.offer_id in excluded)
            return (*refused, kinds.get(o.gpu, 0), not o.spot, o.offer_id in avoided, *_price(o))

        return Ranking(tuple(sorted(able, key=by_kind)), left_out)
    comes_first = {} if market.can_compare(able) else kinds
    quotes = market.quotes(able, among=offers, avoided=avoided)
    exclusions = market.seen.reputation.against_each(able, hardware.image)

    def by_usd(quote: "Quote") -> tuple[object, ...]:
        offer = quote.offer
        refused = (offer.provider in closed, offer.offer_id in excluded, offer in exclusions)
        place = comes_first.get(offer.gpu, 0)
        return (*refused, quote.misfit, quote.is_late, place, quote.usd, kinds.get(offer.gpu, 0), not offer.spot, *_price(offer))

    quotes.sort(key=by_usd)
    return Ranking(tuple(quote.offer for quote in quotes), left_out, tuple(quotes), market.basis, exclusions, market.length)


def _price(offer: Offer) -> tuple[object, ...]:
    """Return what orders offers that are alike otherwise, whichever order their providers list them in."""
    return (offer.usd_per_hour, offer.offer_id, offer.provider, offer.gpu, offer.region)
