"""Rules about the checkpoints of a prime-rl config: that some are saved, kept and found."""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_INTERVAL, _KEEP = "trainer.ckpt.interval", "trainer.ckpt.keep_last"
_SIDES = ("trainer.ckpt", "orchestrator.ckpt")


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
_LOST = "If the machine is lost, all training since the start is lost."
RULES = PrimeRlRules()


def _never_saved(settings: ReceivedConfig) -> Iterator[Violation]:
    if (
        settings.has("trainer.data.fake")
        or settings.number(_INTERVAL) is not None
        or not settings.is_complete
    ):
        return
    parts = [name for name in ("ckpt", *_SIDES) if settings.has(name)]
    if parts:
        yield violation(
            (*parts[0].split("."), "interval"),
            f"{parts[0]} has no interval, so only the last step is saved",
            "add interval = 10",
        )
    elif settings.at("ckpt") is not None:
        yield violation(
            ("ckpt",), "ckpt is turned off, so no checkpoint is saved", "write a [ckpt] with an interval"
        )
    else:
        yield violation(
            ("ckpt",), "there is no [ckpt], so no checkpoint is saved", "add a [ckpt] with interval = 10"
        )


@RULES.note("PR335", "no checkpoint before the end", why=_LOST, fix="add interval to [ckpt]")
def alone(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.spec is None:
        yield from _never_saved(settings)


@RULES.warning(
    "PR336",
    "no checkpoint before the end, on a machine that may be preempted",
    why=_LOST,
    fix="set checkpoints.every_steps",
)
def on_a_machine(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.spec is not None and settings.spec.checkpoints.every_steps is None:
        yield from _never_saved(settings)


@RULES.warning("PR337", "the first checkpoint would come after the end", why=_LOST, fix="save more often")
def too_late(settings: ReceivedConfig) -> Iterator[Violation]:
    interval, steps = settings.integer(_INTERVAL), settings.integer("trainer.max_steps")
    if interval is not None and steps is not None and interval > steps >= 1:
        message = (
            f"ckpt.interval is {interval:,} steps and the run has {steps:,}, so only the last step is saved"
        )
        yield violation(
            settings.place(_INTERVAL), message, f"save for example every {max(1, steps // 10):,} steps"
        )


@RULES.error(
    "PR393", "a run of no steps", why="The run ends before it trains anything.", fix="write max_steps"
)
def no_steps(settings: ReceivedConfig) -> Iterator[Violation]:
    steps = settings.integer("trainer.max_steps")
    if steps is not None and steps < 1:
        yield violation(
            settings.place("trainer.max_steps"),
            f"a run of {steps} steps trains nothing",
            "write the number of steps, or delete it",
        )


@RULES.error("PR340", "a checkpoint interval below 1", why=_REFUSES, fix="write 1 or more")
def never(settings: ReceivedConfig) -> Iterator[Violation]:
    interval = settings.integer(_INTERVAL)
    where = settings.given_at(_INTERVAL)
    # The schema limits the intervals of the parts, but not the shared one.
    if interval is not None and interval < 1 and where == ("ckpt", "interval"):
        yield violation(where, f"ckpt.interval must be at least 1, got {interval}", "write 1 or more")


@RULES.warning(
    "PR338",
    "only one checkpoint is kept",
    why="The trainer deletes the folder during the upload. An upload that takes longer than the interval "
    "never completes.",
    fix="keep 2 or more",
)
def keeps_one(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.spec is not None and settings.integer(_KEEP) == 1:
        message = (
            "keep_last = 1: prime-rl deletes a checkpoint as soon as the next one is saved, even if it is "
            "not uploaded yet"
        )
        yield violation(settings.place(_KEEP), message, "write 2 or more")


@RULES.error("PR339", "half of a checkpoint", why=_REFUSES, fix="write [ckpt], which applies to both")
def one_side(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.has("ckpt") or not settings.is_complete:
        return
    for own, other in (_SIDES, _SIDES[::-1]):
        if settings.has(own) and not settings.has(other):
            message = f"{own} without {other}: half a checkpoint cannot be resumed"
            yield violation(
                tuple(own.split(".")), message, "write [ckpt], which applies to both", on_key=True
            )
    first, second = (settings.number(f"{side}.interval") for side in _SIDES)
    if all(settings.has(side) for side in _SIDES) and first != second:
        where = "orchestrator.ckpt.interval" if second is not None else "trainer.ckpt.interval"
        yield violation(
            settings.place(where),
            "trainer.ckpt and orchestrator.ckpt have different intervals",
            "write [ckpt] interval for both",
        )
