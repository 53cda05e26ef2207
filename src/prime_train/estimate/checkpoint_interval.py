"""What a preemption costs a run, and how often its trainer should save.

The model. A trainer starts a save every `interval_s` and stands still for `stall_s` of it; the upload runs beside the training and is done
`upload_s` after the save. Machines are taken away on average every `mtbf_s`, with no memory of how long they were held. Each time, what
was trained since the newest durable checkpoint is lost: half an interval on average, plus the time its upload took, during which the
training had gone on. Then nothing is trained for `restart_s`. So of each paid second is lost, to first order,

    stall / interval + (interval / 2 + upload + restart) / mtbf

which holds while interval, upload and restart are small beside the mean time between preemptions. Upload and restart do not depend on the
interval, and so do not move the optimum; they set a floor under the loss.

J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974: sqrt(2 stall mtbf) is that optimum.
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006: without the assumption that
a save is short beside mtbf, and with failures during the save and the restart, two more terms of a series in sqrt(stall / 2 mtbf). Daly
counts the interval without its stall; here it is from the start of one save to the start of the next, as it is observed.
"""

import math
from dataclasses import dataclass, fields

RESTART_S = 600.0
"""Until one has been observed: 90 s until the heartbeats are overdue, some minutes for another machine and its set-up, some for the
restore."""

PRIOR_MTBF_S = 12 * 3600.0
"""What is believed of a machine before anything was seen: a cautious guess for spot machines, no measurement."""

PREEMPTIONS_MIN = 2
"""With as many, a run's own figures speak for themselves."""

STALL_SHARE_MAX = 0.01
"""A stall up to this share of the time between preemptions is small enough for Young's formula."""

GAIN_MIN = 0.005
GAIN_SHARE_MIN = 0.2
"""Advice is given when it saves at least this share of the paid time, and this share of what is lost now."""


@dataclass(frozen=True)
class Pace:
    """How a run saves and is interrupted, all of it observed or a default.

    `interval_s` is from the start of one save to the start of the next; where only `interval_steps` is known, it is so many steps and one
    stall. None: not known yet.
    """

    stall_s: float
    upload_s: float
    """From the trainer's completion of a checkpoint until it is durable."""
    mtbf_s: float
    restart_s: float = RESTART_S
    """From the loss of the machine until steps are made again: detection, provision and restore."""
    step_s: float | None = None
    """Mean of a step, the stalls of saves left out: with them, it would change with the interval."""
    interval_s: float | None = None
    interval_steps: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("stall_s", "upload_s", "restart_s") else math.ulp(0.0)
            if value is not None and not (math.isfinite(value) and value >= least):
                raise ValueError(f"{field.name} is {value}; it must be finite and {'not negative' if least == 0 else 'above 0'}")

    @property
    def saves_every_s(self) -> float | None:
        if self.interval_s is not None:
            return self.interval_s
        if self.interval_steps is None or self.step_s is None:
            return None
        return self.interval_steps * self.step_s + self.stall_s


@dataclass(frozen=True)
class Advice:
    """`loss_s`, `loss_usd`: expected for one preemption. Shares are of the paid time, 0 to 1. `text`: None where no change is worth it."""

    loss_s: float
    loss_usd: float
    loss_share: float
    best_interval_s: float | None
    """None where saving takes no time, and so the shorter the better."""
    best_loss_share: float | None
    text: str | None


def durable_lag_s(saved_s: int | None, now_s: int) -> int | None:
    """Seconds of training that are lost if the machine goes now: the age of the newest committed step, saved at `saved_s`."""
    return None if saved_s is None else max(0, now_s - saved_s)


def mtbf_s(paid_s: float, preemptions: int) -> float:
    """Mean paid seconds between preemptions.

    None or one says little: a run of ten minutes without any is not safe for ever, and one in its first minute does not mean one a minute.
    So up to then the rate is the mean of a gamma distribution whose prior is one preemption in `PRIOR_MTBF_S`: as if that had been seen
    before the run began. It gives way to what is observed, up or down, as paid time goes by.
    """
    if paid_s < 0 or preemptions < 0:
        raise ValueError(f"{preemptions} preemptions in {paid_s} s; neither can be negative")
    if preemptions >= PREEMPTIONS_MIN and paid_s > 0:
        return paid_s / preemptions
    return (paid_s + PRIOR_MTBF_S) / (preemptions + 1)


def young_s(stall_s: float, mtbf_s: float) -> float:
    """The interval that loses least to first order (Young 1974)."""
    return math.sqrt(2 * stall_s * mtbf_s)


def daly_s(stall_s: float, mtbf_s: float) -> float:
    """The interval that loses least where a save is not short beside `mtbf_s` (Daly 2006), the stall counted in."""
    if stall_s >= 2 * mtbf_s:
        return mtbf_s + stall_s
    root = math.sqrt(stall_s / (2 * mtbf_s))
    return young_s(stall_s, mtbf_s) * (1 + root / 3 + root**2 / 9)


def loss_s(pace: Pace, interval_s: float) -> float:
    """Expected seconds that one preemption costs: training done again, and waiting for a machine that trains.

    A save that ends while an upload is under way is not sent, so that durable ones are whole intervals apart, `upload_s` or more.
    """
    uploads_every_s = interval_s * max(1, math.ceil(pace.upload_s / interval_s))
    return uploads_every_s / 2 + pace.upload_s + pace.restart_s


def loss_share(pace: Pace, interval_s: float) -> float:
    """Share of the paid time that is lost to saving and to preemptions, 1 at most."""
    return min(1.0, pace.stall_s / interval_s + loss_s(pace, interval_s) / pace.mtbf_s)


def best_interval_s(pace: Pace) -> float | None:
    """The interval that loses least; of whole steps, where a step's length is known. None where saving takes no time at all.

    Never below the upload, or saves would be skipped, nor below the stall, or nothing would be trained.
    """
    formula = young_s if pace.stall_s <= STALL_SHARE_MAX * pace.mtbf_s else daly_s
    best_s = max(formula(pace.stall_s, pace.mtbf_s), pace.upload_s, pace.stall_s)
    return best_s or None if pace.step_s is None else _whole_steps_s(pace, best_s, pace.step_s)


def _whole_steps_s(pace: Pace, best_s: float, step_s: float) -> float:
    steps_min = max(1, math.ceil((pace.upload_s - pace.stall_s) / step_s))
    steps = max(steps_min, math.floor((best_s - pace.stall_s) / step_s))
    return min((each * step_s + pace.stall_s for each in (steps, steps + 1)), key=lambda each_s: loss_share(pace, each_s))


def advise(pace: Pace, *, usd_per_hour: float) -> Advice | None:
    """What preemptions cost at the present pace, and whether another is worth a word. None while the interval is not known."""
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
    return f"saving every {_span(best_s)}{steps} would lose {best_share:.1%} instead of {share:.1%}".replace("%", " %")


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
