"""How long runs are whose config does not say it: as finished runs in the store of the same training were.

Runs are alike if they are of the same config, or else if trainer, model, method and environment are the same,
and progress is counted in the same unit. A model alone, for which no config is given, is compared by the
tokens on which finished runs trained it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from statistics import median
from typing import TYPE_CHECKING

from prime_train.market.step_times import training_key
from prime_train.runs.forecast import Forecast
from prime_train.runs.run import Run, RunState
from prime_train.spec.checkpoint_names import counts_epochs

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

RUNS_MAX = 20
"""How many of the newest runs are compared."""
NAMED_MAX = 3
ONE_FACTOR = 2.0
"""The factor by which another run may be shorter or longer than the only one that is known: an assumption."""


@dataclass(frozen=True)
class Lengths:
    """What finished runs of one kind took, newest first: steps, or epochs, or tokens. `runs`: their ids;
    empty: not known here.
    """

    amounts: tuple[float, ...] = ()
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    """How much a training takes until it is done: the median of what finished runs took, and the range."""

    amount: float
    low: float
    high: float
    number: int
    runs: tuple[str, ...] = ()
    alike: str = ""
    """What the runs have in common, in words."""

    @property
    def band(self) -> tuple[float, float]:
        """Return the lowest and highest amount to expect."""
        return (
            (self.low, self.high) if self.number > 1 else (self.amount / ONE_FACTOR, self.amount * ONE_FACTOR)
        )

    def text(self, unit: str) -> str:
        """Return in words what is guessed, and from which runs: 1,200 steps: the median of 3 finished runs of
        ... (800 to 1,500): a, b
        """
        named = [run for run in self.runs[:NAMED_MAX] if run]
        more = f" and {self.number - len(named)} more" if 0 < len(named) < self.number else ""
        which = f": {', '.join(named)}{more}" if named else ""
        if self.number == 1:
            return f"{self.amount:,.0f} {unit}, as one finished run of {self.alike} took{which}"
        spread = f"{self.low:,.0f} to {self.high:,.0f}"
        return (
            f"{self.amount:,.0f} {unit}: the median of {self.number} finished runs of {self.alike} "
            f"({spread}){which}"
        )

    def left(self, done: int) -> int | None:
        """Return how many steps are probably left after `done`; None if there are more than any of the
        finished runs made.
        """
        return next((round(end) - done for end in (self.amount, self.band[1]) if round(end) > done), None)


def lengths_of(runs: Iterable[Run]) -> dict[str, Lengths]:
    """Return what the finished ones of these runs, newest first, took, by the keys under which a similar
    training is looked up.
    """
    found: dict[str, Lengths] = {}
    for run in runs:
        if run.state is not RunState.SUCCEEDED or run.probe is not None or run.best_step < 1:
            continue
        tokens = run.best_step * run.forecast.batch_tokens
        amounts = {
            training_key(run.spec): float(run.best_step),
            _task_key(run.spec, run.forecast): float(run.best_step),
        }
        if tokens:
            amounts[model_key(run.forecast.trained)] = tokens
        for key, amount in amounts.items():
            known = found.get(key, Lengths())
            if key and len(known.amounts) < RUNS_MAX:
                found[key] = Lengths((*known.amounts, amount), (*known.runs, run.run_id))
    return found


def guessed_steps(lengths: Mapping[str, Lengths], spec: "RunSpec", forecast: Forecast) -> Guess | None:
    """Return how many steps a config makes that does not say it; None if no finished run is like it."""
    same = lengths.get(training_key(spec))
    if same is not None:
        return _guess(same, "the same training")
    like = lengths.get(_task_key(spec, forecast))
    alike = (
        "the same trainer, model and environment" if forecast.environment else "the same trainer and model"
    )
    return _guess(like, alike) if like is not None else None


def guessed_tokens(lengths: Mapping[str, Lengths], trained: str) -> Guess | None:
    """Return on how many tokens a model is trained. `trained`: the model and how it is trained, as
    `Forecast.trained`.
    """
    found = lengths.get(model_key(trained))
    return _guess(found, "the same model and method") if found else None


def unit_of(spec: "RunSpec") -> str:
    return "epochs" if counts_epochs(spec) else "steps"


def model_key(trained: str) -> str:
    """Return a digest of a model and how it is trained; empty if that is not known."""
    return sha256(f"tokens\n{trained.casefold()}".encode()).hexdigest() if trained else ""


def _task_key(spec: "RunSpec", forecast: Forecast) -> str:
    if not forecast.family:
        return ""
    return sha256(
        "\n".join((unit_of(spec), forecast.family.casefold(), forecast.environment)).encode()
    ).hexdigest()


def _guess(lengths: Lengths, alike: str) -> Guess:
    amounts = lengths.amounts
    return Guess(median(amounts), min(amounts), max(amounts), len(amounts), lengths.runs, alike)
