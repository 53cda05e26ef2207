"""How fast each attempt trained, from the metrics that it reported."""

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prime_train.outputs.results.criteria import tokens_names
from prime_train.runs.run import Attempt
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import Progress

HOUR_S = 3600


@dataclass(frozen=True)
class MetricLine:
    """What an attempt reported of a step. `time_s`: None if it is not known."""

    attempt: int
    time_s: float | None
    progress: Progress


@dataclass(frozen=True)
class Throughput:
    """The speed of one attempt. `step_s`: the mean time of a step; `tokens_per_s`: the median of what its
    trainer reported for all GPUs; `usd_per_million_tokens` at the price of its machine. None: unknown.
    """

    attempt: int
    machine: str
    usd_per_hour: float
    first_step: int
    last_step: int
    step_s: float | None
    tokens_per_s: float | None

    @property
    def usd_per_million_tokens(self) -> float | None:
        return self.usd_per_hour / HOUR_S / self.tokens_per_s * 1e6 if self.tokens_per_s else None


def throughput(
    spec: RunSpec, attempts: Iterable[Attempt], lines: Iterable[MetricLine]
) -> Iterator[Throughput]:
    """Yield the speed of each attempt that reported a step, in their order."""
    by_attempt: dict[int, list[MetricLine]] = {}
    for line in lines:
        by_attempt.setdefault(line.attempt, []).append(line)
    for attempt in attempts:
        own = by_attempt.get(attempt.number)
        if own:
            offer, steps = attempt.offer, [line.progress.step for line in own]
            tokens = [value for line in own if (value := _tokens_per_s(spec, line.progress)) is not None]
            yield Throughput(
                attempt.number,
                f"{offer.gpu_count}x {offer.gpu}" if offer.gpu else "no GPU",
                offer.usd_per_hour,
                min(steps),
                max(steps),
                _step_s(own),
                statistics.median(tokens) if tokens else None,
            )


def _tokens_per_s(spec: RunSpec, made: Progress) -> float | None:
    return next((made.others[name] for name in tokens_names(spec.trainer.kind) if name in made.others), None)


def _step_s(lines: Sequence[MetricLine]) -> float | None:
    """Return the mean time of a step, with all that came between steps, such as saving. The times are those
    at which the agent read what the trainer had written, which may be several steps at once.
    """
    timed = [(line.progress.step, line.time_s) for line in lines if line.time_s is not None]
    forward = [
        (step - before, time_s - before_s)
        for (before, before_s), (step, time_s) in itertools.pairwise(timed)
        if step > before
    ]
    steps, took_s = sum(step for step, _ in forward), sum(time_s for _, time_s in forward)
    return took_s / steps if steps and took_s > 0 else None
