"""The steps after training, in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from prime_train.core.results.numbers import Number, Source
from prime_train.core.run import Run


@dataclass(frozen=True)
class StepsAfter:
    """The steps under `after` in a run's config. `trained`: whether training has succeeded, so that they are run; `done`: how many are
    over, the first ones in their order, with those that failed; `failed`: which of these failed, and why; `left`: names of the others."""

    trained: bool
    done: int
    failed: str
    left: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return it as text, such as "1 of 2 done; left: publish"."""
        count = self.done + len(self.left)
        left = f"left: {', '.join(self.left)}" if self.left else ""
        return "; ".join(filter(None, [f"{self.done} of {count} done", self.failed, left]))


def steps_after(run: Run) -> StepsAfter | None:
    """Return how far the steps after training are; None if the config has none. `run` includes the last heartbeat."""
    steps = run.spec.after
    if not steps:
        return None
    done = min(run.after_done, len(steps))
    return StepsAfter(run.trained_step is not None, done, run.after_failed, tuple(step.name for step in steps[done:]))


def facts_of(numbers: Iterable[Number]) -> list[tuple[str, str]]:
    """Return the names of the numbers, and each with where it comes from, such as "0.913 at step 2,000 (evaluate)"."""
    return [(one.name, f"{_value(one)}{_step(one)} ({'evaluation' if one.source is Source.EVALUATION else one.by})") for one in numbers]


def _value(one: Number) -> str:
    return f"{one.value:.6g}" if one.value is not None else "not finite"


def _step(one: Number) -> str:
    return f" at step {one.step:,}" if one.step else ""
