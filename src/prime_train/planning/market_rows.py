"""The machines that a run could be rented, with what it is expected to cost on each to its end, and why: the
same rows everywhere.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prime_train.estimate.checkpoint_interval import Pace, advise, best_interval_s
from prime_train.market import priors
from prime_train.market.quotes import Quote
from prime_train.market.ranking import Ranking
from prime_train.market.reputation import Exclusion
from prime_train.runs.forecast import Forecast
from prime_train.runs.offer import Offer, variant_title
from prime_train.spec.spec import HardwareSpec, RunSpec
from prime_train.text.formatting import span, usd

ROWS_MAX = 6
EXCLUDED_MAX = 5
LOSSES_MIN = 0.05
"""No save interval is recommended to a run that expects fewer losses of its machine than this."""


@dataclass(frozen=True)
class MarketRow:
    """One machine. `machine`: provider, name, GPUs and whether it is spot; `total`: the expected dollars to
    the end of the run; `why`: what they consist of.
    """

    machine: str
    price: str
    total: str
    why: str


def market_rows(ranked: Ranking, hardware: HardwareSpec, *, limit: int = ROWS_MAX) -> Sequence[MarketRow]:
    """Return rows of the best machines, in the order in which they would be tried."""
    return [
        MarketRow(
            named(quote.offer, hardware),
            usd(quote.offer.usd_per_hour),
            quote.total,
            quote.why + _excluded(ranked, quote.offer),
        )
        for quote in ranked.quotes[:limit]
    ]


def _excluded(ranked: Ranking, offer: Offer) -> str:
    found = ranked.exclusions.get(offer)
    return f"; comes last because of {found.text}" if found is not None else ""


def excluded_rows(exclusions: Mapping[Offer, Exclusion]) -> list[str]:
    """Return a line for each machine, host, data centre or image because of which offers come last: why,
    until when, and how many.
    """
    counts = Counter(exclusions.values())
    lines = [
        f"{count} offer{'' if count == 1 else 's'}: {exclusion.text}"
        for exclusion, count in counts.most_common()
    ]
    more = len(lines) - EXCLUDED_MAX
    return [*lines[:EXCLUDED_MAX], *([f"and {more} more"] if more > 0 else [])]


def exclusion_as_json(exclusion: Exclusion | None) -> Mapping[str, object] | None:
    """Return for JSON output why an offer comes last; None if it does not."""
    if exclusion is None:
        return None
    place = exclusion.place
    return {
        "axis": place.axis,
        "name": place.name,
        "why": exclusion.why,
        "last_s": exclusion.last_s,
        "until_s": exclusion.until_s,
    }


def named(offer: Offer, hardware: HardwareSpec) -> str:
    """Return the machine in words, with the variant that it gets."""
    what = f"{offer.gpu_count} x {offer.gpu}, " if offer.gpu else ""
    title = variant_title(offer, hardware)
    return (
        f"{offer.provider} {offer.offer_id} "
        f"({what}{'spot' if offer.spot else 'on-demand'}){f' with {title}' if title else ''}"
    )


def as_json(quote: Quote) -> Mapping[str, object]:
    """Return the quote for JSON output, unrounded; infinite amounts are None."""
    amounts = {
        "usd": quote.usd,
        "hours": quote.hours,
        "losses": quote.losses,
        "hours_per_loss": quote.hours_per_loss,
    }
    return {
        **{name: None if value == float("inf") else value for name, value in amounts.items()},
        "training_hours": quote.work_h,
        "training_hours_known": quote.source or "assumed",
        "losses_per_hour": quote.losses_per_h,
        "start_hours": quote.start_h,
        "traffic_usd": quote.traffic_usd,
        "is_late": quote.is_late,
        "fits": quote.fit,
        "why": quote.why,
    }


def save_advice(quote: Quote, spec: RunSpec, forecast: Forecast) -> str:
    """Return in words how often the trainer should save on such machines, by Young's and Daly's formula; ""
    if hardly any are lost.
    """
    if quote.losses < LOSSES_MIN or quote.hours == float("inf"):
        return ""
    every_steps = spec.checkpoints.every_steps or forecast.every_steps
    step_s = quote.step_s if spec.trainer.steps else None
    pace = Pace(
        math.sqrt(priors.SAVE_S[0] * priors.SAVE_S[1]) if forecast.stall_s is None else forecast.stall_s,
        priors.UPLOAD_S,
        3600 / quote.losses_per_h,
        quote.start_h * 3600,
        step_s=step_s,
        interval_s=forecast.every_s if every_steps is None else None,
        interval_steps=every_steps,
    )
    found, best_s = advise(pace, usd_per_hour=quote.offer.usd_per_hour), best_interval_s(pace)
    if best_s is None:
        return ""
    lost = f"with a loss every {span(pace.mtbf_s)}"
    if found is not None and pace.saves_every_s is not None:
        now = f"the config saves every {span(pace.saves_every_s)}"
        return (
            f"{now}; {lost}, {found.text}"
            if found.text is not None
            else f"{now}, which is about right {lost}"
        )
    steps = f" ({round(best_s / step_s):,} steps)" if step_s else ""
    return f"every {span(best_s)}{steps} loses the least time {lost}"
