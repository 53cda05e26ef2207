"""The numbers that a run, or one attempt of it, resulted in, as JSON in the bucket.

A machine writes those of its own attempt, among its outputs, where it affects no other attempt. When the run
has ended, the control plane writes those of the run. Both are read strictly: names, counts and values were
chosen by a trainer on a rented machine.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from prime_train.buckets.keys import IDENTITY_PATTERN, RUN_ID_PATTERN, attempt_results_key, results_key
from prime_train.spec.limits import CREATED_S_MAX, STEP_MAX
from prime_train.spec.requirements import NAME_CHARS_MAX, violation_of_name

NUMBERS_MAX = 2000
"""Number of numbers that a run can have as its results, those of the same name at several steps included."""
RESULTS_BYTES_MAX = 2**20
"""Longest content in bytes that is read as results."""


class ResultSource(StrEnum):
    """Where a number comes from."""

    TRAINING = "training"
    """The last value that the trainer reported."""
    EVALUATION = "evaluation"
    """An evaluation of the checkpoint of one step, while training went on."""
    AFTER = "after"
    """A step under `after` in the config."""


_PRECEDENCE = {ResultSource.TRAINING: 0, ResultSource.EVALUATION: 1, ResultSource.AFTER: 2}


def _name(name: str) -> str:
    if why := violation_of_name(name):
        raise ValueError(why)
    return name


Name = Annotated[str, AfterValidator(_name)]


class Number(BaseModel):
    """A number, named as under `require` in a config, such as `loss` or `eval/accuracy`. `value`: None if it
    is not finite, such as a loss that became NaN. `by`: the name of the step under `after` that it comes
    from. `step`: the training step that it is of; None: unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name
    value: Annotated[float, Field(allow_inf_nan=False)] | None
    source: ResultSource = ResultSource.TRAINING
    by: str = Field(default="", max_length=NAME_CHARS_MAX)
    step: int | None = Field(default=None, ge=0, le=STEP_MAX)

    @model_validator(mode="after")
    def _is_placed(self) -> Self:
        if (self.source is ResultSource.AFTER) != bool(self.by):
            raise ValueError("`by` names a step under after, for numbers of such a step only")
        if self.by:
            _name(self.by)
        if self.source is ResultSource.EVALUATION and self.step is None:
            raise ValueError("an evaluation is of a step")
        return self

    @property
    def place(self) -> tuple[str, ResultSource, str, int | None]:
        """What distinguishes it from the other numbers of the same results."""
        return self.name, self.source, self.by, self.step if self.source is ResultSource.EVALUATION else None


def number(
    name: str,
    value: float,
    source: ResultSource = ResultSource.TRAINING,
    *,
    by: str = "",
    step: int | None = None,
) -> Number:
    """Return the number, without a value if it is not finite. Raises ValueError for a name that no number can
    have.
    """
    return Number(
        name=name, value=float(value) if math.isfinite(value) else None, source=source, by=by, step=step
    )


Numbers = Annotated[tuple[Number, ...], Field(max_length=NUMBERS_MAX)]


def final_numbers(numbers: Iterable[Number]) -> dict[str, Number]:
    """Return the number that counts for each name: that of a step under `after`, or else of the newest
    evaluation, or else of the training.
    """
    ranked = sorted(numbers, key=lambda one: (_PRECEDENCE[one.source], -1 if one.step is None else one.step))
    return {one.name: one for one in ranked}


class _Results(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[1] = 1
    run: str = Field(pattern=f"^{RUN_ID_PATTERN}$")
    attempt: int = Field(ge=1)
    identity: str = Field(default="", pattern=f"^({IDENTITY_PATTERN})?$")
    numbers: Numbers = ()

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({one.place for one in self.numbers}) != len(self.numbers):
            raise ValueError("a number is listed twice")
        return self

    @property
    def final(self) -> dict[str, Number]:
        """Return the number that counts for each name."""
        return final_numbers(self.numbers)

    @property
    def data(self) -> bytes:
        """Return the content of the object in the bucket."""
        return self.model_dump_json(exclude_defaults=True).encode()


class AttemptResults(_Results):
    """What one attempt resulted in, as its machine wrote it."""

    @property
    def key(self) -> str:
        return attempt_results_key(self.run, self.attempt, self.identity)

    def with_numbers(self, numbers: Iterable[Number]) -> "AttemptResults":
        """Return the results with these numbers, each in the place of an older one of the same name, source
        and, for an evaluation, step. Of more than `NUMBERS_MAX` numbers, the oldest evaluations are left out
        first.
        """
        kept = {one.place: one for one in (*self.numbers, *numbers)}
        evaluations = sorted(
            (one for one in kept.values() if one.source is ResultSource.EVALUATION),
            key=lambda one: one.step or 0,
        )
        for one in evaluations[: max(0, len(kept) - NUMBERS_MAX)]:
            del kept[one.place]
        return self.model_copy(update={"numbers": tuple(kept.values())[:NUMBERS_MAX]})


class RunResults(_Results):
    """What a run resulted in, as the control plane wrote it when the run had ended.

    `attempt`: the last one. `config`: the config's name, and `config_sha256` a hash of what it said about the
    training, apart from the seed; `commit` and `code_sha256`: those of the working tree, empty if unknown;
    `ended_s` in the store's time; `step`: the furthest step that was trained; `seed`: the seed, None if the
    config names none.
    """

    state: str = Field(max_length=40)
    config: str = Field(max_length=200)
    config_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    commit: str = Field(default="", max_length=200)
    code_sha256: str = Field(default="", max_length=64)
    ended_s: int = Field(ge=0, le=CREATED_S_MAX)
    step: int = Field(ge=0, le=STEP_MAX)
    seed: int | None = None

    @property
    def key(self) -> str:
        return results_key(self.run)


Read = TypeVar("Read", AttemptResults, RunResults)


def parse_attempt_results(data: bytes, run: str, attempt: int, identity: str) -> AttemptResults | None:
    """Return the results; None for anything else than complete results of that attempt."""
    found = _parsed(AttemptResults, data)
    return (
        found
        if found is not None and (found.run, found.attempt, found.identity) == (run, attempt, identity)
        else None
    )


def parse_run_results(data: bytes, run: str) -> RunResults | None:
    """Return the results; None for anything else than complete results of that run."""
    found = _parsed(RunResults, data)
    return found if found is not None and found.run == run else None


def _parsed(kind: type[Read], data: bytes) -> Read | None:
    if len(data) > RESULTS_BYTES_MAX:
        return None
    try:
        return kind.model_validate_json(data)
    except ValueError:
        return None
