"""The estimated time and cost of a run, line by line, each as a range with its reason.

    provisioning    from the order to the running agent
    set-up          the config's own commands, the model's download, compilation
    smoke run       its steps, at most its timeout
    training        steps times the time of one, and the source of that time
    saving          training pauses for each checkpoint
    preemptions     on spot: their number times half a checkpoint interval, another machine, set-up and restore

This module does not depend on a machine type: a `Rate` is a price and whether the machine can be preempted.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from prime_train.estimate.cost.duration import HOUR_S, PREEMPTION_EVERY_S, Between

PROVISIONING_S = Between(60.0, 300.0)
"""Seconds from the order to the running agent."""
SETUP_S = Between(120.0, 600.0)
"""Seconds for the config's own set-up commands, such as installing packages."""
COMPILING_S = Between(60.0, 300.0)
"""Seconds that compilation adds to the first step."""
DOWNLOAD_B_PER_S = Between(100e6, 1e9)
"""The download rate of models from the hub and of checkpoints from the bucket."""
INTERVAL_S = 1800.0
"""The time between two checkpoints if it is not known."""
SEEN_SPREAD = Between(1 / 1.25, 1.25)
"""The error factor of a boot or set-up time that this account has seen before."""
SAVE_S = Between(2.0, 30.0)
"""Seconds for which training pauses for a save."""


class Known(StrEnum):
    """The source of a step time, the most reliable first."""

    GIVEN = "given"
    MEASURED = "measured in an earlier run"
    SIMILAR = "measured in runs of the same model and trainer"
    SCALED = "measured on another kind of GPU"
    PUBLISHED = "estimated from published speeds"


@dataclass(frozen=True)
class StepTime:
    """The seconds of one training step, with the source of the figure."""

    seconds: Between
    known: Known
    why: str = ""


@dataclass(frozen=True)
class Amount:
    """The work to be done. `model_bytes` is the size of the downloaded model, `checkpoint_bytes` that of one checkpoint; 0 means none or
    not known."""

    steps: int
    step: StepTime
    every_steps: int | None = None
    smoke_steps: int = 0
    smoke_s_max: float = 0.0
    model_bytes: float = 0.0
    checkpoint_bytes: float = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"{self.steps} steps; there must be at least 1")


@dataclass(frozen=True)
class Rate:
    """The price of a machine. `usd_per_hour` is for the entire machine."""

    usd_per_hour: float
    spot: bool

    def usd(self, time: Between) -> Between:
        """Return the dollars for a time in seconds."""
        per_s = self.usd_per_hour / HOUR_S
        return time * Between(per_s, per_s)


@dataclass(frozen=True)
class Seen:
    """What this account has seen of such machines, and of this config. `boot`: seconds from the order to the agent; `setup`: from there to
    the first step, a smoke run included; None: not seen. `losses_per_h`: losses of machines to expect in an hour; None: not known."""

    boot: Between | None = None
    setup: Between | None = None
    losses_per_h: float | None = None


NOTHING_SEEN = Seen()


@dataclass(frozen=True)
class Line:
    """A part of a bill, with its time in seconds and the reason."""

    name: str
    time: Between
    why: str


@dataclass(frozen=True)
class Bill:
    """The estimated time and cost of a run at a rate."""

    lines: tuple[Line, ...]
    rate: Rate

    @property
    def time(self) -> Between:
        """Return the seconds of all lines."""
        return sum((line.time for line in self.lines[1:]), start=self.lines[0].time)

    @property
    def training(self) -> Between:
        """Return the part of the time that counts towards the budget's hours: training and saving, from the first step on."""
        return sum((line.time for line in self.lines if line.name in ("training", "saving")), start=Between(0.0, 0.0))

    @property
    def usd(self) -> Between:
        """Return the dollars for the time of all lines."""
        return self.rate.usd(self.time)

    def budget_says(self, usd_max: float, hours_max: float | None = None) -> str:
        """Return a sentence that says whether the budget is enough."""
        usd, hours = self.usd, self.training * Between(1 / HOUR_S, 1 / HOUR_S)
        if hours_max is not None and hours.low > hours_max:
            return f"too few hours: {hours_max:g} h, but the run needs at least {hours.low:.1f} h and would be stopped before it ends"
        if usd.low > usd_max:
            return f"too small: ${usd_max:,.2f}, but the run needs at least ${usd.low:,.2f} and would be stopped before it ends"
        if usd.high > usd_max or (hours_max is not None and hours.high > hours_max):
            return (
                f"may be too small: ${usd_max:,.2f}, but the run may need up to ${usd.high:,.2f} and {hours.high:.1f} h; a warning is "
                f"sent at 80 %"
            )
        return f"enough: ${usd_max:,.2f}, and the run needs at most ${usd.high:,.2f}; unused budget is not charged"


def full_run(amount: Amount, rate: Rate, seen: Seen = NOTHING_SEEN) -> Bill:
    """Return the bill of the run to its last step."""
    start = _start(amount, seen)
    training = amount.step.seconds * Between(amount.steps, amount.steps)
    smoke = _smoke(amount) if seen.setup is None else ()
    lines = [*start, *smoke, Line("training", training, _training_why(amount))]
    if amount.every_steps:
        saves = amount.steps // amount.every_steps
        lines.append(Line("saving", SAVE_S * Between(saves, saves), f"{saves:,} checkpoints"))
    if rate.spot:
        lines.append(_preemptions(amount, lines, seen))
    return Bill(tuple(lines), rate)


def smoke_run(amount: Amount, rate: Rate, seen: Seen = NOTHING_SEEN) -> Bill | None:
    """Return the bill up to the end of the smoke run, which is the cost of finding out that the config works; None if there is no smoke
    run."""
    smoke = _smoke(amount)
    return Bill((*_start(amount, seen), *(smoke if seen.setup is None else ())), rate) if smoke else None


def _start(amount: Amount, seen: Seen) -> tuple[Line, ...]:
    boot = Line("provisioning", PROVISIONING_S, "from the order to the agent's start")
    if seen.boot is not None:
        boot = Line("provisioning", seen.boot, "as seen on other machines")
    if seen.setup is not None:
        return boot, Line("set-up", seen.setup, "as in earlier runs of this config, up to the first step")
    download = _transfer(amount.model_bytes)
    setup = SETUP_S + download + COMPILING_S
    model = f", {amount.model_bytes / 1e9:.0f} GB of model" if amount.model_bytes else ""
    return boot, Line("set-up", setup, f"setup commands{model}, compilation in the first step")


def _smoke(amount: Amount) -> tuple[Line, ...]:
    if amount.smoke_s_max <= 0:
        return ()
    if not amount.smoke_steps:
        return (Line("smoke run", Between(min(30.0, amount.smoke_s_max), amount.smoke_s_max), "up to its timeout"),)
    took = COMPILING_S + amount.step.seconds * Between(amount.smoke_steps, amount.smoke_steps)
    most = amount.smoke_s_max
    return (Line("smoke run", Between(min(took.low, most), min(took.high, most)), f"{amount.smoke_steps} steps"),)


def _training_why(amount: Amount) -> str:
    one = amount.step.seconds
    low, high = _rounded(one.low), _rounded(one.high)
    each = low if low == high else f"{low} to {high}"
    return f"{amount.steps:,} steps of {each} s, {amount.step.known}{': ' if amount.step.why else ''}{amount.step.why}"


def _rounded(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def _preemptions(amount: Amount, lines: list[Line], seen: Seen) -> Line:
    total = sum((line.time for line in lines[1:]), start=lines[0].time)
    number = _losses(total, seen.losses_per_h)
    interval = Between(INTERVAL_S, INTERVAL_S)
    if amount.every_steps:
        interval = amount.step.seconds * Between(amount.every_steps, amount.every_steps)
    # The least is half an interval and a new machine; the most never exceeds what was trained.
    lost = Between(min(interval.low, total.low) / 2, min(interval.high, total.high) / 2)
    again = lost + lines[0].time + lines[1].time + _transfer(amount.checkpoint_bytes)
    times, each = f"{number.low:.1f} to {number.high:.1f} times", f"{again.low / 60:.0f} to {again.high / 60:.0f} min each"
    why = f"{times}, {each}: half a checkpoint interval, start and restore"
    return Line("preemptions", number * again, why)


def _losses(total: Between, losses_per_h: float | None) -> Between:
    """Return the number of losses in that time. Where their rate is known, their number varies by about its square root."""
    if losses_per_h is None:
        return Between(total.low / PREEMPTION_EVERY_S.high, total.high / PREEMPTION_EVERY_S.low)
    few, most = (time * losses_per_h / HOUR_S for time in (total.low, total.high))
    return Between(max(0.0, few - math.sqrt(few)), most + math.sqrt(most))


def _transfer(count: float) -> Between:
    if not 0 < count < math.inf:
        return Between(0.0, 0.0)
    return Between(count / DOWNLOAD_B_PER_S.high, count / DOWNLOAD_B_PER_S.low)
