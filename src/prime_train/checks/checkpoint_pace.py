"""Compares how often a run on spot saves with the optimal interval (estimate/checkpoint_interval.py has the
model and its sources).

The step time is derived from the speeds of such GPUs, the budget's hours, or a setting in seconds; without
any of them nothing is reported. Spot machines are assumed to be preempted once in 6 to 24 hours, 12 in the
middle (market/priors.py). Within that range the best interval changes by a factor of 1.4 each way, so an
interval `OFF_FACTOR` times off is off at every rate; at three times the best interval 1.7 times the
unavoidable loss is lost. If that is less than `GAIN_MIN` of the paid time, nothing is reported. Of every
range, the end that favours the config is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.checks.host_bytes import disk_bytes
from prime_train.checks.memory_plan import plan_of
from prime_train.estimate import gpus
from prime_train.estimate.checkpoint_interval import Pace, best_interval_s, loss_share
from prime_train.estimate.cost.duration import HOUR_S, Between
from prime_train.estimate.job import JobDescription
from prime_train.estimate.models.lookup import resolve_model
from prime_train.market import priors
from prime_train.spec.rule import Subject, Violation
from prime_train.trainers.prime_rl.conventions import KIND
from prime_train.trainers.prime_rl.rules.rule import settings_of

OFF_FACTOR = 3.0
GAIN_MIN = 0.05
WRITE_B_PER_S = Between(0.5e9, 3e9)
"""The write rate of a rented machine's disk."""
SAVE_LEAST_S = 2.0
STATE_BYTES = 12
"""Bytes per parameter in an AReaL checkpoint with FSDP: weight and both AdamW states in 32 bit."""
SLOWER_TIMES = 3.0
"""Factor by which the slowest published RL run is slower than the range of the estimate."""
SECONDS_MAX = 30 * 86400
INTERVAL = "trainer.ckpt.interval"


@dataclass(frozen=True)
class SavePlan:
    """How a config saves. `every_s` is the time between two saves; `steps` is the same in steps, or None if
    the interval is set in seconds.
    """

    path: tuple[str | int, ...]
    every_s: Between
    saved_b: float
    steps: int | None = None

    @property
    def stall_s(self) -> Between:
        """Return the seconds that training pauses for a save."""
        return Between(
            SAVE_LEAST_S + self.saved_b / WRITE_B_PER_S.high, SAVE_LEAST_S + self.saved_b / WRITE_B_PER_S.low
        )


def off(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if the config saves far too seldom or far too often."""
    saving = save_plan_of(subject)
    if saving is not None:
        yield from _violations(
            saving,
            Pace(saving.stall_s.high, 0.0, priors.SPOT_USUAL_LOSS_EVERY_H * HOUR_S, 0.0),
            saving.every_s.low,
            "seldom",
        )
        yield from _violations(
            saving,
            Pace(saving.stall_s.low, 0.0, priors.SPOT_LOSS_EVERY_H[0] * HOUR_S, 0.0),
            saving.every_s.high,
            "often",
        )


def slow_upload(subject: Subject, mb_per_s: float) -> Iterator[Violation]:
    """Yield a violation if an upload certainly takes longer than the interval, even with the slowest
    steps.
    """
    saving = save_plan_of(subject)
    if saving is None:
        return
    upload_s, between_s = saving.saved_b / 1e6 / mb_per_s, saving.every_s.high
    if upload_s > between_s:
        message = (
            f"a checkpoint of {saving.saved_b / 1e9:.0f} GB takes {upload_s / 60:.0f} min at {mb_per_s:g} "
            "MB/s; "
            f"the next one follows after at most {between_s / 60:.0f} min"
        )
        yield Violation(("checkpoints", "upload_mb_per_s_max"), message)


def save_plan_of(subject: Subject) -> SavePlan | None:
    """Return how the config saves; None if that cannot be estimated."""
    if subject.format == KIND:
        return _of_prime_rl(subject)
    return _of_areal(subject) if subject.format == "areal" else None


def step_s(plan: JobDescription, subject: Subject) -> Between | None:
    """Return the time of one step on any of the allowed GPU kinds; None if one of them, or the batch, is not
    known.
    """
    spec = subject.spec
    known = [gpus.facts(kind) for kind in spec.hardware.gpus] if spec is not None else []
    if spec is None or not known or plan.batch_tokens < 1:
        return None
    times = [plan.step_s(gpu, spec.hardware.count) for gpu in known if gpu is not None]
    if len(times) < len(known):
        return None
    return Between(
        min(one.low for one in times), max(one.high for one in times) * (SLOWER_TIMES if plan.is_rl else 1.0)
    )


def _of_prime_rl(subject: Subject) -> SavePlan | None:
    settings, plan, spec = settings_of(subject), plan_of(subject), subject.spec
    if settings is None or plan is None or spec is None:
        return None
    every, steps, step = settings.integer(INTERVAL), spec.trainer.steps, step_s(plan, subject)
    if every is None or every < 1 or steps is None or every >= steps:
        return None
    # The budget's hours limit the step time, if the run is to end within them.
    ends = [step.high] if step is not None else []
    ends += [spec.budget.hours * 3600 / steps] if spec.budget.hours is not None else []
    if not ends:
        return None
    least_s = min(step.low if step is not None else 0.0, *ends)
    return SavePlan(
        settings.place(INTERVAL),
        Between(every * least_s, every * min(ends)),
        disk_bytes(plan, subject)[1],
        every,
    )


def _of_areal(subject: Subject) -> SavePlan | None:
    config = subject.trainer
    model = resolve_model(config.text("actor", "path") or "") if config is not None else None
    seconds = config.number("recover", "freq_secs") if config is not None else None
    if config is None or model is None or seconds is None or not 0 < seconds <= SECONDS_MAX:
        return None
    if (
        config.value("recover", "mode") not in (True, "on", "auto")
        or config.value("recover", "freq_steps") is not None
    ):
        return None
    return SavePlan(
        ("recover", "freq_secs"), Between(float(seconds), float(seconds)), STATE_BYTES * model.params
    )


def _violations(saving: SavePlan, pace: Pace, every_s: float, word: str) -> Iterator[Violation]:
    if every_s <= 0:
        return
    best_s = best_interval_s(pace) or every_s
    times = every_s / best_s if word == "seldom" else best_s / every_s
    lost, least = loss_share(pace, every_s), loss_share(pace, best_s)
    if times < OFF_FACTOR or lost - least < GAIN_MIN:
        return
    steps = f" ({saving.steps} step{'s' * (saving.steps > 1)})" if saving.steps is not None else ""
    lost_times = (
        f"{lost:.0%} of the paid time is lost to saving and repeated steps; "
        "every "
        f"{best_s / 60:.0f} min would lose {least:.0%}"
    )
    message = (
        f"checkpoints are saved too {word}: every {_span(saving.every_s)}{steps}. A save takes "
        f"{pace.stall_s:.0f} s ({saving.saved_b / 1e9:.0f} GB); with a preemption every "
        f"{pace.mtbf_s / 3600:.1f} h, {lost_times}"
    ).replace("%", " %")
    fix = f"save for example {_better(saving, best_s)}, by Young's and Daly's formula"
    yield Violation(saving.path, message, fix, document="trainer")


def _better(saving: SavePlan, best_s: float) -> str:
    """Return the better interval in the unit of the setting."""
    if saving.steps is None:
        return f"{round(best_s / 60) * 60}"
    return f"{max(1, round(best_s / saving.every_s.expected * saving.steps))}"


def _span(every: Between) -> str:
    unit, word = (60, "min") if every.high >= 600 else (1, "s")
    low, high = every.low / unit, every.high / unit
    return f"{low:.0f} {word}" if high < low * 1.05 else f"{low:.0f} to {high:.0f} {word}"
