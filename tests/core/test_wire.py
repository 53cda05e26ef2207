"""The messages between agent and control plane, and their signatures."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from prime_train.runs.wire import (
    LOG_TAIL_CHARS_MAX,
    Bootstrap,
    Commit,
    Heartbeat,
    JobExit,
    Outcome,
    Phase,
    PodKeys,
    Refusal,
    Reply,
    Ticket,
    attempt_key,
    sign,
)
from prime_train.spec.causes import Cause
from prime_train.spec.limits import STEP_MAX
from tests import builders as b
from tests.core.given import PROPERTY

KEY = attempt_key(b"master", b.RUN_ID, 1)
REQUEST: dict[str, Any] = {
    "key": KEY,
    "timestamp_s": 1_000_000,
    "method": "POST",
    "path": "/v1/heartbeat",
    "body": b"{}",
}
METHODS = st.sampled_from(["GET", "POST", "PUT"])
PATHS = st.text("ab/:", max_size=4).map(lambda rest: "/" + rest)
BODIES = st.text("ab/:{}", max_size=4).map(str.encode)


@pytest.mark.parametrize(
    "other",
    [
        {"key": attempt_key(b"master", b.RUN_ID, 2)},
        {"timestamp_s": 1_000_001},
        {"method": "PUT"},
        {"path": "/v1/commit"},
        {"body": b"{} "},
        {"body": b""},
    ],
)
def test_a_signature_changes_with_every_part_of_the_request(other: dict[str, Any]) -> None:
    assert sign(**REQUEST) != sign(**(REQUEST | other))


def test_a_signature_says_its_version_and_does_not_hold_the_key() -> None:
    signature = sign(**REQUEST)
    assert signature.startswith("v1=")
    assert KEY not in signature


def test_no_two_requests_have_the_same_signature_though_their_parts_may_hold_colons() -> None:
    assert sign(KEY, 1, "POST", "/v1/heartbeat", b"x:{}") != sign(KEY, 1, "POST", "/v1/heartbeat:x", b"{}")


@PROPERTY
@given(
    one=st.tuples(st.integers(0, 9), METHODS, PATHS, BODIES),
    other=st.tuples(st.integers(0, 9), METHODS, PATHS, BODIES),
)
def test_two_different_requests_without_colons_are_signed_differently(
    one: tuple[int, str, str, bytes], other: tuple[int, str, str, bytes]
) -> None:
    assume(one != other and ":" not in one[2] + other[2])
    assert sign(KEY, *one) != sign(KEY, *other)


@pytest.mark.parametrize(
    "other",
    [(b"other", b.RUN_ID, 1), (b"master", "tiny-2", 1), (b"master", b.RUN_ID, 11), (b"master", "tiny", 1)],
)
def test_each_attempt_of_each_run_has_a_key_of_its_own(other: tuple[bytes, str, int]) -> None:
    assert attempt_key(*other) != KEY


def test_the_same_attempt_has_the_same_key_again_and_nothing_is_stored() -> None:
    assert attempt_key(b"master", b.RUN_ID, 1) == KEY


@PROPERTY
@given(
    step=st.integers(0, STEP_MAX),
    seq=st.integers(1, 2**53),
    phase=st.sampled_from(list(Phase)),
    cause=st.sampled_from(list(Cause)),
    text=st.text(max_size=200),
    slow_s=st.one_of(st.none(), st.floats(0, 1e7)),
)
def test_a_heartbeat_is_read_back_as_it_was_reported(
    step: int, seq: int, phase: Phase, cause: Cause, text: str, slow_s: float | None
) -> None:
    last = JobExit(cause=cause, detail=text, code=-9)
    message = b.heartbeat(
        seq, step=step, phase=phase, note=text, sick=cause, sick_detail=text, step_slow_s=slow_s, exit=last
    )
    assert Heartbeat.model_validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize(
    "unusual",
    [
        {"run": "../x"},
        {"run": "A"},
        {"attempt": 0},
        {"seq": 0},
        {"seq": 2**53 + 1},
        {"step": -1},
        {"step_age_s": -1},
        {"step_slow_s": -0.1},
        {"step_slow_s": float("nan")},
        {"step_slow_s": float("inf")},
        {"phase": "asleep"},
        {"sick": "flu"},
        {"note": "x" * 201},
        {"sick_detail": "x" * 501},
        {"surprise": 1},
    ],
)
def test_a_heartbeat_with_an_impossible_value_is_refused(unusual: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Heartbeat.model_validate(b.heartbeat().model_dump() | unusual)


def test_an_exit_whose_log_is_over_its_limit_is_refused() -> None:
    JobExit(cause=Cause.KILLED, log_tail="x" * LOG_TAIL_CHARS_MAX)
    with pytest.raises(ValidationError):
        JobExit(cause=Cause.KILLED, log_tail="x" * (LOG_TAIL_CHARS_MAX + 1))


def test_a_commit_that_names_no_step_or_a_negative_one_is_refused() -> None:
    with pytest.raises(ValidationError):
        Commit.model_validate({"run": b.RUN_ID, "attempt": 1, "key": "k"})
    with pytest.raises(ValidationError):
        Commit.model_validate({"run": b.RUN_ID, "attempt": 1, "key": "k", "step": -1})


def test_no_key_and_no_secret_is_shown_when_a_message_is_printed() -> None:
    ticket = Ticket(run=b.RUN_ID, attempt=1, url="http://127.0.0.1:1", key="hush-key")
    boot = Bootstrap(
        run=b.RUN_ID, attempt=1, spec=b.spec(), bucket_url="file:///b", secrets={"TOKEN": "hush-secret"}
    )
    assert "hush" not in f"{ticket!r} {ticket} {boot!r} {boot}"


@pytest.mark.parametrize(
    "answer",
    [
        Bootstrap(run=b.RUN_ID, attempt=1, spec=b.spec(), bucket_url="file:///b"),
        PodKeys(access_key_id="id", secret_access_key="s", session_token="t", valid_s=60),
        Reply(outcome=Outcome.OK),
        Refusal(error="busy"),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_what_a_newer_control_plane_says_more_is_passed_over(answer: BaseModel) -> None:
    message = answer.model_dump(mode="json") | {"of_tomorrow": 1}
    assert type(answer).model_validate_json(json.dumps(message)) == answer


@pytest.mark.parametrize(
    "requested", [b.heartbeat(), b.commit(5)], ids=lambda requested: type(requested).__name__
)
def test_what_is_queried_has_to_be_understood_complete(requested: BaseModel) -> None:
    with pytest.raises(ValidationError, match="of_tomorrow"):
        type(requested).model_validate_json(
            json.dumps(requested.model_dump(mode="json") | {"of_tomorrow": 1})
        )


def test_a_reply_carries_no_order_unless_one_is_given() -> None:
    assert Reply(outcome=Outcome.OK).order.value == "none"
