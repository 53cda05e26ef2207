"""A run's record stays within what a table holds, whatever its life brings."""

from dataclasses import replace

import pytest

from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.change.parts import NOTICE_CHARS_MAX
from prime_train.runs.record_size import (
    ATTEMPT_BYTES,
    CONFIG_BYTES_MAX,
    RUN_BYTES_MAX,
    attempt_bytes,
    config_bytes,
    too_large,
)
from prime_train.runs.resuming.trust import DISTRUSTED_MAX, WHY_CHARS_MAX
from prime_train.runs.run import ATTEMPTS_KEPT_MAX, Distrusted, NotificationRecord, Run, RunState, TrackedStep
from prime_train.runs.stored_json import dump
from prime_train.runs.wire import JobExit
from prime_train.spec.spec import RunSpec
from tests import builders as b

WIDE = "\U0001f525"
"""A character of four bytes."""
DETAIL_CHARS_MAX = next(
    one.max_length for one in JobExit.model_fields["detail"].metadata if hasattr(one, "max_length")
)


def of_size(size: int) -> RunSpec:
    """Return a config of that many bytes."""
    return b.spec(environment={"LONG": "x" * (size - config_bytes(b.spec(environment={"LONG": ""})))})


def eventful(spec: RunSpec, attempts: int = ATTEMPTS_KEPT_MAX + 1) -> Run:
    """Return a run with everything that a long life can bring, in the longest words."""
    run = b.run(RunState.TRAINING, attempt=attempts, spec=spec)
    return replace(
        run,
        attempts=tuple(
            replace(one, detail=WIDE * DETAIL_CHARS_MAX, identity="f" * 16, tracked=TrackedStep(2**50, 2**31))
            for one in run.attempts
        ),
        notices=tuple(NotificationRecord(kind, 2**31, WIDE * NOTICE_CHARS_MAX) for kind in AlertKind),
        distrusted=tuple(Distrusted(2**50, n, n, WIDE * WHY_CHARS_MAX) for n in range(DISTRUSTED_MAX)),
    )


def test_the_largest_config_fits_with_all_that_its_run_can_gain() -> None:
    spec = of_size(CONFIG_BYTES_MAX)
    assert too_large(spec) is None
    assert len(dump(ledger.fold(eventful(spec), bytes_max=0)).encode()) <= RUN_BYTES_MAX


def test_a_config_that_is_one_byte_too_large_is_refused_by_its_size_and_the_values_that_take_it() -> None:
    found = too_large(of_size(CONFIG_BYTES_MAX + 1))
    assert found is not None
    path, words = found
    assert path == ("environment", "LONG")
    assert (
        "takes 131,073 bytes where runs are stored, and at most 131,072 fit; the most take environment.LONG "
        "(1" in words
    )


def test_many_lines_of_setup_are_named_as_one_value() -> None:
    found = too_large(b.spec(setup=tuple(f"pip install package-{n}" for n in range(8000))))
    assert found is not None
    assert (found[0], "setup (" in found[1]) == (("setup",), True)


@pytest.mark.parametrize("characters", [0, 400])
def test_attempts_with_words_of_usual_length_are_all_kept(characters: int) -> None:
    run = b.run(RunState.TRAINING, attempt=ATTEMPTS_KEPT_MAX)
    run = replace(run, attempts=tuple(replace(one, detail="x" * characters) for one in run.attempts))
    assert ledger.fold(run) == run


def test_attempts_with_long_words_are_merged_into_the_totals_before_they_are_many() -> None:
    run = eventful(b.spec())
    kept = ledger.fold(run).attempts
    assert kept == run.attempts[-len(kept) :]
    assert 10 < len(kept) < ATTEMPTS_KEPT_MAX
    assert ledger.fold(run).folded.attempts == len(run.attempts) - len(kept)


def test_an_attempt_takes_no_more_than_is_counted_for_it() -> None:
    (attempt,) = eventful(b.spec(), attempts=1).attempts
    bare = replace(attempt, detail="")
    assert len(dump(bare)) <= ATTEMPT_BYTES == attempt_bytes(bare)
