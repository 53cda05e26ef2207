"""The order in which offers are tried for a run, and why the others were left out: one order for a launch,
for a move, and for everybody who only asks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from prime_train.market.quotes import Market, Quote
from prime_train.market.reputation import Exclusion
from prime_train.runs.offer import Offer, fits
from prime_train.spec.spec import HardwareSpec

NOTHING_KNOWN = Market()
"""What is known without a config and a store: nothing but assumptions."""


@dataclass(frozen=True)
class LeftOut:
    offer: Offer
    why: str


@dataclass(frozen=True)
class Ranking:
    """Ranked offers. `quotes`: what the run is expected to cost on each offer that fits, in the order in
    which they should be tried; `left_out`: every other offer, with the reason. `basis`: what the quotes are
    based on. `exclusions`: the offers that come last because something about them failed before.
    """

    quotes: tuple[Quote, ...]
    left_out: tuple[LeftOut, ...]
    basis: str = ""
    exclusions: Mapping[Offer, Exclusion] = field(default_factory=dict)
    length: str = ""
    """Where the number of steps behind the quotes is from, in words; empty: the config says it."""

    @property
    def best(self) -> tuple[Offer, ...]:
        """Return the offers that fit, in the order in which they should be tried."""
        return tuple(quote.offer for quote in self.quotes)

    @property
    def why_none(self) -> str:
        """Why no offer fits; empty if one does."""
        if self.quotes:
            return ""
        return self.left_out[0].why if self.left_out else "the provider has no machine for rent"


def rank(
    offers: Sequence[Offer],
    hardware: HardwareSpec,
    *,
    excluded: Collection[str] = (),
    avoided: Collection[str] = (),
    closed: Collection[str] = (),
    on_demand: bool = False,
    market: Market = NOTHING_KNOWN,
) -> Ranking:
    """Return the offers ranked by what the run is expected to cost to its end on them, as `market` knows it.
    If it does not know how long the run takes on each kind of GPU, kinds come in the user's order, and
    dollars decide within a kind.

    `excluded` offers (ids of machines that failed) and those of `closed` providers (which refuse all machines
    at present) come last but are kept: if nothing else is left, an offer that failed once is better than
    none. Offers on which the run would not end by its deadline come after those on which it would, and those
    whose GPUs the training is not expected to fit after both. For `avoided` offers (recently preempted) more
    losses are expected. What `market` knows to have failed for other runs comes last as well. With
    `on_demand`, spot offers are left out if another one fits.
    """
    reasons = [(offer, fits(offer, hardware)) for offer in offers]
    if on_demand and any(why is None and not offer.spot for offer, why in reasons):
        spot = "is spot, and too many spot machines were preempted recently"
        reasons = [(offer, why or (spot if offer.spot else None)) for offer, why in reasons]
    able = [offer for offer, why in reasons if why is None]
    kinds = {kind: place for place, kind in enumerate(hardware.gpus)}
    comes_first = {} if market.can_compare(able) else kinds
    exclusions = market.seen.reputation.against_each(able, hardware.image)

    def order(quote: Quote) -> tuple[object, ...]:
        offer = quote.offer
        refused = (offer.provider in closed, offer.offer_id in excluded, offer in exclusions)
        place = comes_first.get(offer.gpu, 0)
        dollars = (quote.usd, kinds.get(offer.gpu, 0), not offer.spot, offer.usd_per_hour)
        # Offers that are alike otherwise have the same order, whichever order their providers list them in.
        names = (offer.offer_id, offer.provider, offer.gpu, offer.region)
        return (*refused, quote.misfit, quote.is_late, place, *dollars, *names)

    quotes = tuple(sorted(market.quotes(able, among=offers, avoided=avoided), key=order))
    left_out = tuple(LeftOut(offer, why) for offer, why in reasons if why is not None)
    return Ranking(quotes, left_out, market.basis, exclusions, market.length)
