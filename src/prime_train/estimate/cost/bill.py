"""The bill of a run on one machine: what its quote consists of, line by line, each as a range with its
reason.

    provisioning    from the order to the running agent
    set-up          the config's own commands, the model's download, compilation
    smoke run       its steps, at most its timeout
    training        steps times the time of one, and the source of that time
    saving          training pauses for each checkpoint, if a measured step does not contain that
    upload          the last checkpoint
    losses          machines that are lost: what is trained again, and another start

The lines add up to the hours and the dollars of the quote (market/quotes.py), by which offers are ranked: a
bill explains a quote and knows nothing that the quote does not. Only the ranges are added here: how far each
line may be off.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from prime_train.estimate.cost.duration import HOUR_S, Between
from prime_train.market import priors
from prime_train.market.observations import TIMES_WEIGHT, Times
from prime_train.market.quotes import Market, Quote
from prime_train.market.step_times import StepTime, TimeSource

GUESS_FACTOR = math.sqrt(5.0)
"""The factor by which an assumed time of a start or an upload may be too high or too low: of five minutes,
two to eleven.
"""
SEEN_FACTOR = 1.25
"""The same of times that this account has seen."""
DEVIATIONS = 0.65
"""How many standard deviations of their number, its square root, losses may be more or fewer: less than one,
because the ends of the other lines are seldom met at the same time. Played runs end within the range
(tests/estimate/test_cost_range.py).
"""
TRAFFIC_FACTOR = 1.5
"""The factor by which the dollars for traffic may be too high or too low."""


@dataclass(frozen=True)
class Line:
    """A part of a bill: its time in seconds, as expected and as a range that contains it, and the reason."""

    name: str
    expected_s: float
    time: Between
    why: str


@dataclass(frozen=True)
class Bill:
    """The time and cost of a run, or of its first part, on the machine of the quote. `traffic_usd`: dollars
    on top of the hours.
    """

    quote: Quote
    lines: tuple[Line, ...]
    traffic_usd: float = 0.0

    @property
    def time(self) -> Between:
        """Return the seconds of all lines."""
        return _sum(line.time for line in self.lines)

    @property
    def expected_s(self) -> float:
        """Return the expected seconds of all lines."""
        return sum(line.expected_s for line in self.lines)

    @property
    def training(self) -> Between:
        """Return the part of the time that counts towards the budget's hours: training and saving, from the
        first step on.
        """
        return _sum(line.time for line in self.lines if line.name in ("training", "saving"))

    @property
    def usd(self) -> Between:
        """Return the dollars of all lines, and of the traffic."""
        return self.usd_of(self.time) + Between(
            self.traffic_usd / TRAFFIC_FACTOR, self.traffic_usd * TRAFFIC_FACTOR
        )

    @property
    def expected_usd(self) -> float:
        return self.expected_s / HOUR_S * self.quote.offer.usd_per_hour + self.traffic_usd

    def usd_of(self, time: Between) -> Between:
        """Return the dollars for a time in seconds on this machine."""
        per_s = self.quote.offer.usd_per_hour / HOUR_S
        return time * Between(per_s, per_s)

    def budget_says(self, usd_max: float, hours_max: float | None = None) -> str:
        """Return a sentence that says whether the budget is enough; of a training whose time is only assumed,
        that it is not known.
        """
        if self.quote.source is None:
            return (
                f"it is not known whether ${usd_max:,.2f} is enough, because the time of the training "
                "is only assumed"
            )
        usd, hours = self.usd, self.training * Between(1 / HOUR_S, 1 / HOUR_S)
        if hours_max is not None and hours.low > hours_max:
            return (
                f"too few hours: {hours_max:g} h, but the run needs at least {hours.low:.1f} h and "
                "would be stopped before it ends"
            )
        if usd.low > usd_max:
            return (
                f"too small: ${usd_max:,.2f}, but the run needs at least ${usd.low:,.2f} and would "
                "be stopped before it ends"
            )
        if usd.high > usd_max or (hours_max is not None and hours.high > hours_max):
            return (
                f"may be too small: ${usd_max:,.2f}, but the run may need up to ${usd.high:,.2f} and "
                f"{hours.high:.1f} h; a warning is sent at 80 %"
            )
        return (
            f"enough: ${usd_max:,.2f}, and the run needs at most ${usd.high:,.2f}; unused budget is "
            "not charged"
        )


def bill_of(market: Market, quote: Quote) -> Bill | None:
    """Return the bill of the run to its last durable step; None if it would not end."""
    if not math.isfinite(quote.usd):
        return None
    lines = [*_start(market, quote), _training(market, quote)]
    if quote.saving_h:
        lines.append(_line("saving", quote.saving_h, GUESS_FACTOR, "training pauses for each checkpoint"))
    if quote.upload_h:
        lines.append(_line("upload", quote.upload_h, GUESS_FACTOR, "of the last checkpoint"))
    if quote.losses:
        lines.append(_losses(market, quote, lines))
    return Bill(quote, tuple(lines), quote.traffic_usd)


def smoke_bill(full: Bill | None) -> Bill | None:
    """Return the bill up to the end of the smoke run, which is the cost of finding out that the config works;
    None if there is no smoke run, or if it is not told apart from the set-up because that was seen.
    """
    if full is None or not full.quote.smoke_h:
        return None
    last = next(place for place, line in enumerate(full.lines) if line.name == "smoke run")
    return Bill(full.quote, full.lines[: last + 1])


def _start(market: Market, quote: Quote) -> list[Line]:
    boot, setup = market.seen.boot.get(quote.offer.provider), _setup_seen(market)
    why = (
        "from the order to the agent's start"
        if boot is None
        else "as seen on other machines, from the order to the agent's start"
    )
    lines = [_line("provisioning", quote.boot_h, _factor(boot), why)]
    model = f", {market.work.model_bytes / 1e9:.0f} GB of model" if market.work.model_bytes else ""
    restore = ", restore of the checkpoint" if market.work.resumes else ""
    why = f"setup commands{model}, compilation in the first step{restore}"
    if setup is not None:
        why = "as in earlier runs of this config, up to the first step"
    lines.append(_line("set-up", quote.start_h - quote.boot_h - quote.smoke_h, _factor(setup), why))
    if quote.smoke_h:
        lines.append(_smoke(market, quote))
    return lines


def _setup_seen(market: Market) -> Times | None:
    seen, config = market.seen, market.work.config
    return seen.resume.get(config) if market.work.resumes else seen.setup.get(config)


def _smoke(market: Market, quote: Quote) -> Line:
    steps, most_s = market.work.smoke_steps, market.work.smoke_s_max
    expected_s = quote.smoke_h * HOUR_S
    if steps is None:
        return Line(
            "smoke run",
            expected_s,
            Between(min(priors.SMOKE_SHORT_S, expected_s), most_s),
            "up to its timeout",
        )
    return Line(
        "smoke run",
        expected_s,
        Between(expected_s / GUESS_FACTOR, max(expected_s, min(most_s, expected_s * GUESS_FACTOR))),
        f"{steps} steps",
    )


def _training(market: Market, quote: Quote) -> Line:
    work, step = market.work, market.work.step_time(quote.offer)
    hours = quote.work_h - quote.saving_h
    if step is None or quote.source is None or work.steps is None:
        why = (
            "the budget's hours"
            if work.hours is not None
            else "for want of a number of steps and of the time of one"
        )
        return _line("training", hours, 1.0, f"assumed: {why}")
    each = f"of {_each(step)} s, {known(step)}"
    if work.guess is None:
        return _line("training", hours, step.spread, f"{work.steps:,} {work.unit} {each}")
    low, high = (end / work.guess.amount for end in work.guess.band)
    seconds = hours * HOUR_S
    spread = Between(seconds * low / step.spread, seconds * high * step.spread)
    return Line("training", seconds, spread, f"{work.steps:,} {work.unit}, as in finished runs, {each}")


def known(step: StepTime) -> str:
    """Return where the time of a step comes from, in words."""
    basis = f": {step.basis.text}" if step.basis is not None and step.basis.text else ""
    return f"{_KNOWN[step.source]}{basis}"


_KNOWN = {
    TimeSource.GIVEN: "as given",
    TimeSource.MEASURED: "measured in an earlier run",
    TimeSource.SIMILAR: TimeSource.SIMILAR.value,
    TimeSource.SCALED: TimeSource.SCALED.value,
    TimeSource.ESTIMATED: "estimated from published speeds",
}


def _each(step: StepTime) -> str:
    low, high = _rounded(step.seconds / step.spread), _rounded(step.seconds * step.spread)
    return low if low == high else f"{low} to {high}"


def _rounded(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def _losses(market: Market, quote: Quote, lines: list[Line]) -> Line:
    """Return what losses of machines take. Their number varies by about its square root, and the rate is
    known the better the more losses it was seen in.
    """
    offer, step = quote.offer, market.work.step_time(quote.offer)
    rate_factor = 1 + 1 / math.sqrt(1 + market.seen.losses_of(offer.provider, spot=offer.spot).count)
    # The ends of the number and those of the time of each are seldom met at once, so that the latter are
    # taken half as far.
    start_factor, step_factor = (
        math.sqrt(one) for one in (_factor(_setup_seen(market)), step.spread if step is not None else 1.0)
    )
    hours = _sum(line.time for line in lines) * Between(1 / HOUR_S, 1 / HOUR_S)
    few, most = hours.low * quote.losses_per_h / rate_factor, hours.high * quote.losses_per_h * rate_factor
    number = Between(
        max(0.0, min(few, quote.losses) - DEVIATIONS * math.sqrt(few)),
        max(most, quote.losses) + DEVIATIONS * math.sqrt(most),
    )
    each_s = quote.hours_per_loss * HOUR_S
    start_s = min(each_s, quote.start_h * HOUR_S)
    each = Between(
        start_s / start_factor + (each_s - start_s) / step_factor,
        start_s * start_factor + (each_s - start_s) * step_factor,
    )
    why = (
        f"{number.low:.1f} to {number.high:.1f} times, {each.low / 60:.0f} to {each.high / 60:.0f} min each: "
        f"half a checkpoint interval, start and restore"
    )
    return Line("losses", quote.losses * each_s, number * each, why)


def _line(name: str, hours: float, factor: float, why: str) -> Line:
    seconds = hours * HOUR_S
    return Line(name, seconds, Between(seconds / factor, seconds * factor), why)


def _factor(seen: Times | None) -> float:
    """Return the factor by which a time may be too high or too low: the less of it was seen, the more."""
    if seen is None:
        return GUESS_FACTOR
    assumed = TIMES_WEIGHT / (seen.weight + TIMES_WEIGHT)
    return float(SEEN_FACTOR * (GUESS_FACTOR / SEEN_FACTOR) ** assumed)


def _sum(times: Iterable[Between]) -> Between:
    return sum(times, start=Between(0.0, 0.0))
