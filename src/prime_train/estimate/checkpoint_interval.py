"""The expected cost of preemptions, and how often a trainer should save.

The model. A trainer starts a save every `interval_s` and pauses training for `stall_s` of it; the upload runs
in parallel with training and ends `upload_s` after the save. Preemptions are memoryless, with a mean of
`mtbf_s` between them. Each one loses the training since the newest durable checkpoint: half an interval on
average, plus the training done while that checkpoint was uploaded. Then no training happens for `restart_s`.
To first order, the lost share of the paid time is

    stall / interval + (interval / 2 + upload + restart) / mtbf

which holds while interval, upload and restart are small compared to the mean time between preemptions. Upload
and restart do not depend on the interval, so they do not move the optimum; they only add a constant to the
loss.

J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974: sqrt(2 stall
mtbf) is that optimum. J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
dumps", FGCS 22(3), 2006: without the assumption that a save is short compared to mtbf, and with failures
during the save and the restart; it adds two terms of a series in sqrt(stall / 2 mtbf). Daly's interval
excludes the stall; here an interval is from the start of one save to the start of the next, as it is
observed.
"""

import math
from dataclasses import dataclass, fields

from prime_train.market import priors

RESTART_S = priors.BOOT_S + priors.SETUP_S
"""The assumed seconds for a restart until one was observed: those of another machine's boot and set-up."""

PRIOR_MTBF_S = priors.SPOT_USUAL_LOSS_EVERY_H * 3600
"""The assumed mean time between preemptions before any observation, as everywhere."""

PREEMPTIONS_MIN = 2
"""Number of preemptions from which on the run's own mean is used without the prior."""

STALL_SHARE_MAX = 0.01
"""Share of the time between preemptions up to which a stall is small enough for Young's formula."""

GAIN_MIN = 0.005
GAIN_SHARE_MIN = 0.2
"""Advice is given if it saves at least `GAIN_MIN` of the paid time and at least `GAIN_SHARE_MIN` of the
current loss.
"""


@dataclass(frozen=True)
class Pace:
    """How often a run saves and is preempted; each value is observed or a default.

    `interval_s` is from the start of one save to the start of the next; if only `interval_steps` is known,
    the interval is that many steps plus one stall. None means not known yet.
    """

    stall_s: float
    upload_s: float
    """Seconds from the completion of a checkpoint by the trainer until the checkpoint is durable."""
    mtbf_s: float
    restart_s: float = RESTART_S
    """Seconds from the loss of the machine to the next training step: detection, provisioning and restore."""
    step_s: float | None = None
    """The mean step time without the stalls of saves, so that it does not depend on the interval."""
    interval_s: float | None = None
    interval_steps: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("stall_s", "upload_s", "restart_s") else math.ulp(0.0)
            if value is not None and not (math.isfinite(value) and value >= least):
                raise ValueError(
                    f"{field.name} is {value}; it must be finite and "
                    f"{'not negative' if least == 0 else 'above 0'}"
                )

    @property
    def saves_every_s(self) -> float | None:
        """Return the seconds from the start of one save to the start of the next; None if not known."""
        if self.interval_s is not None:
            return self.interval_s
        if self.interval_steps is None or self.step_s is None:
            return None
        return self.interval_steps * self.step_s + self.stall_s


@dataclass(frozen=True)
class Advice:
    """The expected loss of a preemption and the best interval. `loss_s` and `loss_usd` are per preemption;
    shares are of the paid time, 0 to 1. `text` is None if no change is worthwhile.
    """

    loss_s: float
    loss_usd: float
    loss_share: float
    best_interval_s: float | None
    """The interval in seconds with the lowest expected loss; None if saving takes no time, as shorter
    intervals are then always better.
    """
    best_loss_share: float | None
    text: str | None


def mtbf_s(paid_s: float, preemptions: int) -> float:
    """Return the mean paid seconds between preemptions.

    Fewer than `PREEMPTIONS_MIN` say little: ten minutes without a preemption do not make a run safe, and one
    in the first minute does not mean one per minute. Until then the rate is the mean of a gamma posterior
    whose prior is one preemption in `PRIOR_MTBF_S`, as if that had been observed before the run. Observations
    outweigh the prior as paid time grows.

    Raises ValueError if an argument is negative.
    """
    if paid_s < 0 or preemptions < 0:
        raise ValueError(f"{preemptions} preemptions in {paid_s} s; neither may be negative")
    if preemptions >= PREEMPTIONS_MIN and paid_s > 0:
        return paid_s / preemptions
    return (paid_s + PRIOR_MTBF_S) / (preemptions + 1)


def young_s(stall_s: float, mtbf_s: float) -> float:
    """Return the interval in seconds that minimises the loss to first order (Young 1974)."""
    return math.sqrt(2 * stall_s * mtbf_s)


def daly_s(stall_s: float, mtbf_s: float) -> float:
    """Return the interval in seconds, stall included, that minimises the loss even if a save is not short
    compared to `mtbf_s` (Daly 2006).
    """
    if stall_s >= 2 * mtbf_s:
        return mtbf_s + stall_s
    root = math.sqrt(stall_s / (2 * mtbf_s))
    return young_s(stall_s, mtbf_s) * (1 + root / 3 + root**2 / 9)


def loss_s(pace: Pace, interval_s: float) -> float:
    """Return the expected seconds that one preemption costs: training repeated, and waiting until training
    resumes.

    A save that completes during an upload is not uploaded, so durable checkpoints are whole intervals apart,
    and at least `upload_s`.
    """
    uploads_every_s = interval_s * max(1, math.ceil(pace.upload_s / interval_s))
    return uploads_every_s / 2 + pace.upload_s + pace.restart_s


def loss_share(pace: Pace, interval_s: float) -> float:
    """Return the share of the paid time lost to saves and preemptions, at most 1."""
    return min(1.0, pace.stall_s / interval_s + loss_s(pace, interval_s) / pace.mtbf_s)


def best_interval_s(pace: Pace) -> float | None:
    """Return the interval in seconds that minimises the loss, rounded to whole steps if `step_s` is known;
    None if saving takes no time.

    The interval is never shorter than the upload, as saves would be skipped, nor than the stall, as no
    training would happen.
    """
    formula = young_s if pace.stall_s <= STALL_SHARE_MAX * pace.mtbf_s else daly_s
    best_s = max(formula(pace.stall_s, pace.mtbf_s), pace.upload_s, pace.stall_s)
    return best_s or None if pace.step_s is None else _in_steps_s(pace, best_s, pace.step_s)


def _in_steps_s(pace: Pace, best_s: float, step_s: float) -> float:
    steps_min = max(1, math.ceil((pace.upload_s - pace.stall_s) / step_s))
    steps = max(steps_min, math.floor((best_s - pace.stall_s) / step_s))
    return min(
        (each * step_s + pace.stall_s for each in (steps, steps + 1)),
        key=lambda each_s: loss_share(pace, each_s),
    )


def advise(pace: Pace, *, usd_per_hour: float) -> Advice | None:
    """Return the cost of preemptions at the current interval, with advice if another interval is worthwhile;
    None if the interval is not known.
    """
    interval_s = pace.saves_every_s
    if interval_s is None:
        return None
    lost_s, share = loss_s(pace, interval_s), loss_share(pace, interval_s)
    best_s = best_interval_s(pace)
    best_share = None if best_s is None else loss_share(pace, best_s)
    text = _text(pace, best_s, share, best_share) if best_s is not None and best_share is not None else None
    return Advice(lost_s, lost_s * usd_per_hour / 3600, share, best_s, best_share, text)


def _text(pace: Pace, best_s: float, share: float, best_share: float) -> str | None:
    if share - best_share < max(GAIN_MIN, GAIN_SHARE_MIN * share):
        return None
    steps = f" ({round((best_s - pace.stall_s) / pace.step_s)} steps)" if pace.step_s else ""
    return f"saving every {_span(best_s)}{steps} would lose {best_share:.1%} instead of {share:.1%}".replace(
        "%", " %"
    )


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
