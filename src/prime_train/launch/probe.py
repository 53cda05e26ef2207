"""Probes: short runs that measure how long a step of a config takes, and how much GPU memory it needs, on the
cheapest machine that fits.

A probe trains as its config says, set-up and smoke test included. The control plane ends it once enough steps
were made, without a last save. Its trainer section is the config's own, so what it measures counts for every
later run of the config.
"""

from dataclasses import dataclass

from prime_train.advice import SettingAdvice
from prime_train.errors import UsageError
from prime_train.market.step_times import STEPS_MIN
from prime_train.planning.limits import PROBE_SECONDS, PROBE_STEPS, PROBE_USD
from prime_train.planning.memory import check_range
from prime_train.runs.run import Probe
from prime_train.spec.choices import Migrate
from prime_train.spec.spec import CheckpointSpec, RunSpec

STEPS_MAX, SECONDS_MAX = 1000, 3600.0
USD_MIN, USD_MAX = 0.01, 1000.0
SUFFIX = "-probe"
NAME_CHARS_MAX = 32


class TooFewSteps(UsageError):
    """A config makes fewer steps than it takes to measure them."""


@dataclass(frozen=True)
class ProbeLimits:
    """What a probe measures at least, `steps` steps after the first one in `seconds` or more, and the most
    that it may cost. Raises UsageError for a value out of range.
    """

    steps: int = PROBE_STEPS
    seconds: float = PROBE_SECONDS
    usd: float = PROBE_USD

    def __post_init__(self) -> None:
        check_range(SettingAdvice.STEPS, self.steps, STEPS_MIN, STEPS_MAX)
        check_range(SettingAdvice.SECONDS, self.seconds, 0, SECONDS_MAX)
        check_range(SettingAdvice.USD, self.usd, USD_MIN, USD_MAX)

    def probe(self, spec: RunSpec, *, done: int = 0) -> Probe:
        """Return what a probe of the config measures, in its steps after step `done`: at most all of them.
        Raises TooFewSteps if these are too few.
        """
        steps = self.steps if spec.trainer.steps is None else min(self.steps, spec.trainer.steps - done - 1)
        if steps < STEPS_MIN:
            raise TooFewSteps(
                f"trainer.steps is {spec.trainer.steps}: too few steps to measure",
                fix=f"set at least {done + STEPS_MIN + 1}: {STEPS_MIN} of them are measured after the first "
                "one",
            )
        return Probe(spec.name, steps, self.seconds)


def probe_spec(spec: RunSpec, limits: ProbeLimits) -> RunSpec:
    """Return what a probe of the config runs: the same training, without what follows it, and within the
    probe's own budget.
    """
    budget = spec.budget.model_copy(
        update={"usd": limits.usd, "hours": None, "deadline": None, "upload_usd": None}
    )
    changes = {
        "name": spec.name[: NAME_CHARS_MAX - len(SUFFIX)].rstrip("-") + SUFFIX,
        "budget": budget,
        "hardware": spec.hardware.model_copy(update={"migrate": Migrate.NEVER}),
        "checkpoints": _checkpoints(spec.checkpoints),
        "outputs": (),
        "success": None,
        "after": (),
        "require": (),
    }
    return spec.model_copy(update=changes)


def _checkpoints(checkpoints: CheckpointSpec) -> CheckpointSpec:
    """Return what a probe keeps: of what its trainer saves nothing is needed, but for a probe that loses its
    machine. A config that says nothing of checkpoints goes on saying nothing, because anything else is a
    promise that some are saved.
    """
    if checkpoints == CheckpointSpec():
        return checkpoints
    return checkpoints.model_copy(update={"keep": 1, "keep_every_steps": None, "keep_best": 0})
