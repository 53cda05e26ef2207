"""A heartbeat read without pydantic has the values of the validated one, and nothing is read that pydantic would refuse."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from prime_train.core.causes import Cause
from prime_train.core.fast_parsing import heartbeat as heartbeat_parser
from prime_train.core.fast_parsing.heartbeat_fields import FIELDS
from prime_train.core.manifest import STEP_MAX
from prime_train.core.wire import ATTEMPT_MAX, SECONDS_MAX, Deletions, Gpus, Heartbeat, JobExit, Phase, Saves, Traffic
from tests import builders as b
from tests.core import heartbeat_table

WHOLE = st.integers(0, 2**53)
STEPS, SECONDS = st.integers(0, STEP_MAX), st.integers(0, SECONDS_MAX)
NUMBER = st.floats(0, allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
MAYBE_NUMBER = st.none() | NUMBER

SAID: dict[str, st.SearchStrategy[Any]] = {
    "step": STEPS,
    "step_age_s": SECONDS,
    "step_slow_s": st.none() | st.floats(0, 1e7),
    "timed_steps": WHOLE,
    "timed_s": st.none() | st.floats(0, 1e9),
    "timed_spread_s": st.none() | st.floats(0, 1e9),
    "saving": st.booleans(),
    "preempting": st.booleans(),
    "sick": st.none() | st.sampled_from(Cause),
    "sick_detail": TEXT,
    "gpu_util_pct": MAYBE_NUMBER,
    "gpus": st.none()
    | st.builds(Gpus, count=WHOLE, util_low_pct=st.none() | st.floats(0, 100), hottest_c=st.integers(-50, 150), note=TEXT),
    "disk_full_s": st.none() | WHOLE,
    "saves": st.none() | st.builds(Saves, interval_s=st.none() | st.floats(0, SECONDS_MAX), size_bytes=st.none() | WHOLE, skipped=WHOLE),
    "traffic": st.none() | st.builds(Traffic, down_bytes=WHOLE, up_bytes=WHOLE, seconds=SECONDS),
    "deleted": st.none() | st.builds(Deletions, checkpoints=WHOLE, newest_step=STEPS, local_bytes=WHOLE),
    "loss": st.none() | st.floats(),
    "note": TEXT,
    "news": st.booleans(),
    "exit": st.none() | st.builds(JobExit, cause=st.sampled_from(Cause), code=st.none() | st.integers(-64, 255), log_tail=TEXT),
}
HEARTBEATS = st.builds(
    Heartbeat, run=st.just(b.RUN_ID), attempt=st.integers(1, ATTEMPT_MAX), seq=st.integers(1, 2**53), phase=st.sampled_from(Phase), **SAID
)

_RAW = ["null", "true", "0", "1", "-0", "-1", "1.0", "0.1", "1e2", "1E999", "01", "NaN", "-Infinity", "9007199254740993", "1" * 400]
_RAW += ['""', '"train"', '"killed"', '"tiny-1"', '"Tiny"', '"x\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\t"', '"' + "x" * 201 + '"']
_RAW += ["{}", "[]", '{"cause":"killed"}', '{"cause":"killed","cause":"killed"}', '{"count":2,"note":"n"}', '{"skipped":true}', "[" * 5000]
_MADE = [st.floats().map(json.dumps), st.decimals(-1000, 1000, places=30).map(str), st.text(max_size=9).map(json.dumps)]
RAW = st.one_of(st.sampled_from(_RAW), *_MADE)
NAMES = st.sampled_from([*FIELDS["Heartbeat"], *FIELDS["JobExit"], "odd"])
RIGHT = {"run": '"tiny-1"', "attempt": "1", "seq": "1", "phase": '"train"'}


def checked(text: str) -> Heartbeat | None:
    try:
        return Heartbeat.model_validate_json(text)
    except ValidationError:
        return None


def written(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {raw}' for name, raw in pairs) + "}"


def test_the_table_of_fields_is_fresh() -> None:
    assert heartbeat_table.FILE.read_text(encoding="utf-8") == heartbeat_table.text(), "python -m tests.core.heartbeat_table"


def test_nothing_is_queried_of_a_heartbeat_beyond_its_fields() -> None:
    assert heartbeat_table.validators() == set()
    assert all(
        part.model_config == BaseModel.model_config | {"frozen": True, "extra": "forbid"} for part in heartbeat_table.parts(Heartbeat)
    )


@settings(max_examples=150, deadline=None)
@given(HEARTBEATS)
def test_whatever_an_agent_says_is_read_plainly(heartbeat: Heartbeat) -> None:
    text = heartbeat.model_dump_json()
    values = heartbeat_parser.read(text)
    assert values is not None
    assert heartbeat_parser.read(heartbeat.model_dump_json(exclude_defaults=True)) == values
    assert checked(heartbeat_parser.dumped(values)) == checked(text)
    assert json.loads(heartbeat_parser.dumped(values)).keys() == checked(text).model_dump(exclude_defaults=True).keys()  # type: ignore[union-attr]


@settings(max_examples=800, deadline=None)
@given(st.lists(st.tuples(NAMES, RAW), max_size=4), st.booleans())
def test_what_is_read_plainly_is_what_the_library_reads(more: list[tuple[str, str]], repeats: bool) -> None:
    text = written([*RIGHT.items(), *more] if repeats else [*(RIGHT | dict(more)).items()])
    values = heartbeat_parser.read(text)
    if values is not None:
        assert checked(text) is not None
        assert checked(heartbeat_parser.dumped(values)) == checked(text)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("loss", "NaN"),
        ("loss", "1e999"),
        ("loss", "1"),
        ("step", "1.0"),
        ("step", "true"),
        ("step", "9007199254740993"),
        ("step", "1" * 5000),
        ("step", "null"),
        ("saving", "1"),
        ("note", '"\\ud800"'),
        ("note", '"' + "x" * 201 + '"'),
        ("phase", '"dreaming"'),
        ("sick", '["killed"]'),
        ("gpus", '{"count":1,"count":1}'),
        ("gpus", '{"mood":1}'),
        ("exit", "{}"),
        ("exit", "[]"),
        ("note", "[" * 20_000),
        ("mood", "1"),
        ("run", '"Tiny"'),
        ("run", '"tiny-1\\n"'),
        ("attempt", "0"),
    ],
)
def test_what_is_unusual_is_left_to_the_library(name: str, raw: str) -> None:
    assert heartbeat_parser.read(written([*RIGHT.items()])) is not None
    assert heartbeat_parser.read(written([*(RIGHT | {name: raw}).items()])) is None


WHOLE_HEARTBEAT = written([*RIGHT.items()])


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '"x"', "{", "\ufeff" + WHOLE_HEARTBEAT, "[" * 50_000, WHOLE_HEARTBEAT + "x", '{"run":"a"}']
)
def test_what_is_no_heartbeat_is_left_to_the_library(text: str) -> None:
    assert heartbeat_parser.read(text) is None


def test_a_field_that_is_reported_twice_is_left_to_the_library() -> None:
    assert heartbeat_parser.read(written([*RIGHT.items(), ("step", "1"), ("step", "1")])) is None


def test_what_is_as_it_is_by_default_is_left_out() -> None:
    values = heartbeat_parser.read(b.heartbeat(7, gpus=Gpus(count=2), news=False).model_dump_json())
    assert values == {"run": b.RUN_ID, "attempt": 1, "seq": 7, "phase": "train", "step": 10, "step_slow_s": 1.0, "gpus": {"count": 2}}
