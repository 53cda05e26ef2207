"""The values that a rehearsal writes into a config."""

from pathlib import Path

import pytest

from prime_train.rehearsal.conclusions import conclusions
from prime_train.rehearsal.rehearsal import Rehearsal
from prime_train.rehearsal.written_config import config_values, differences, in_common
from prime_train.spec.spec import RunSpec
from prime_train.spec.tree import Plain
from tests import builders as b
from tests.rehearsal.rehearsals import request_of


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("out", "out", "out"),
        ("logs/version_0/checkpoints", "logs/version_1/checkpoints", "logs/version_*/checkpoints"),
        ("runs/train/exp/weights", "runs/train/exp2/weights", "runs/train/exp*/weights"),
        ("out/2026-11-27_10-00-01", "out/2026-11-27_10-00-09", "out/*"),
        ("runs/happy-cat", "runs/brave-dog", "runs/*"),
        ("runs/run-19", "runs/run-20", "runs/run-*"),
        ("a/b", "a/b/c", "a/b"),
    ],
)
def test_what_differs_between_two_starts_becomes_a_wildcard(first: str, second: str, found: str) -> None:
    assert in_common(first, second) == found


FOUND: dict[str, Plain] = {
    "trainer": {
        "command": "python train.py",
        "resume": "",
        "progress": {"kind": "regex", "pattern": "x (?P<step>1)"},
    },
    "checkpoints": {"folder": "out", "pattern": "c-{step}", "settled_s": 2},
}


def own(**changes: object) -> RunSpec:
    sections: dict[str, object] = {
        "trainer": {"resume": "", "progress": {"kind": "regex", "pattern": "my (?P<step>\\d+)"}},
        "checkpoints": {"folder": "out", "pattern": "c-{step}"},
    }
    return b.spec(**(sections | changes))


def test_a_config_that_says_the_same_in_its_own_words_differs_in_nothing() -> None:
    spec = own()
    assert differences(FOUND, spec.model_dump(mode="json"), spec) == []


def test_each_value_that_contradicts_what_was_seen_is_named() -> None:
    spec = own(checkpoints={"folder": "elsewhere", "pattern": "c-{step}"})
    said = differences(FOUND, {"checkpoints": {"folder": "elsewhere"}}, spec)
    assert said == ["checkpoints.folder: the config says 'elsewhere'; found: 'out'"]


def test_a_missing_value_is_named_with_what_was_found() -> None:
    spec = b.spec()
    said = differences(FOUND, {"trainer": {"command": "python train.py"}}, spec)
    assert "checkpoints.pattern is not in the config; found: 'c-{step}'" in said


def test_commands_of_the_setup_that_were_not_run_are_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n")
    found = Rehearsal(request_of(tmp_path))

    setup = config_values(found, usd=5.0)["setup"]

    assert setup == ["python -m pip install -r requirements.txt"]
    said = {one.topic: f"{one.text}; {one.evidence}" for one in conclusions(found)}
    assert said["setup"].startswith("python -m pip install -r requirements.txt; it is in the folder; not run")
