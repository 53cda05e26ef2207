"""The order in which offers are tried for a run, and why the others were left out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from prime_train.core.market.quotes import Market, Quote
from prime_train.core.market.reputation import Exclusion
from prime_train.core.offers import Offer, fits
from prime_train.core.spec import HardwareSpec


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
    quotes: tuple[Quote, ...] = ()
    basis: str = ""
    exclusions: Mapping[Offer, Exclusion] = field(default_factory=dict)
    length: str = ""
    """Where the number of steps behind the quotes is from, in words; empty: the config says it, or there are no quotes."""

    @property
    def why_none(self) -> str:
        """Why no offer fits; empty if one does."""
        return "" if self.best else self.left_out[0].why if self.left_out else "the provider has no machine for rent"


def rank(
    offers: Sequence[Offer],
    hardware: HardwareSpec,
    *,
    excluded: Collection[str] = (),
    avoided: Collection[str] = (),
    closed: Collection[str] = (),
    on_demand: bool = False,
    market: Market | None = None,
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

    def by_usd(quote: Quote) -> tuple[object, ...]:
        offer = quote.offer
        refused = (offer.provider in closed, offer.offer_id in excluded, offer in exclusions)
        place = comes_first.get(offer.gpu, 0)
        return (*refused, quote.misfit, quote.is_late, place, quote.usd, kinds.get(offer.gpu, 0), not offer.spot, *_price(offer))

    quotes.sort(key=by_usd)
    return Ranking(tuple(quote.offer for quote in quotes), left_out, tuple(quotes), market.basis, exclusions, market.length)


def _price(offer: Offer) -> tuple[object, ...]:
    """Return what orders offers that are alike otherwise, whichever order their providers list them in."""
    return (offer.usd_per_hour, offer.offer_id, offer.provider, offer.gpu, offer.region)
