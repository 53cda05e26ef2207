"""What a spec accepts, and in which words it refuses."""

import re

import pytest
from pydantic import ValidationError

from prime_train.spec.spec import (
    CheckpointSpec,
    CodeSpec,
    HardwareSpec,
    HealthSpec,
    ProgressSpec,
    RunSpec,
    VerifySpec,
)
from tests.builders import spec


def test_the_smallest_spec_has_a_name_a_command_and_a_budget() -> None:
    made = RunSpec.model_validate(
        {"name": "tiny", "trainer": {"command": "python train.py"}, "budget": {"usd": 5}}
    )
    assert made.checkpoints.keep == 3
    assert made.health.heartbeat_s == 30


@pytest.mark.parametrize(
    ("text", "size"), [("1 MB", 10**6), ("2GiB", 2 * 2**30), ("1.5 kB", 1500), ("12", 12), (7, 7)]
)
def test_sizes_are_read_with_their_units(text: object, size: int) -> None:
    assert VerifySpec.model_validate({"path": "a", "size_min": text}).size_min == size


@pytest.mark.parametrize(
    ("section", "values", "words"),
    [
        ("trainer", {"command": "run {ceckpoints}"}, "unknown placeholder {ceckpoints}; known: checkpoints"),
        ("trainer", {"command": "run {"}, "write {{ and }} for plain braces"),
        ("trainer", {"command": "run {checkpoints:>9999999999}"}, "may only be a width"),
        ("trainer", {"resume": "--from {step:>{checkpoint}}"}, "may only be a width"),
        ("trainer", {"resume": "--from {checkpoint:5}"}, "does not accept a format"),
        ("trainer", {"resume": "--from {step!r}"}, "may only be a width"),
        ("checkpoints", {"pattern": "a/step_{step}"}, "must be one name, with {step}"),
        ("checkpoints", {"folder": "/data"}, "must be a relative path"),
        ("checkpoints", {"folder": "../data"}, "must be a relative path"),
        ("hardware", {"gpus": ["H100"], "count": 3}, "use one of 1, 2, 4, 8"),
        ("health", {"heartbeat_s": 90}, "must hold; correct the values"),
        ("verification", [{"path": "x", "size_min": "1 XB"}], "'1 XB' is not a size"),
        ("budget", {"usd": float("inf")}, "finite number"),
        ("budget", {"usd": 0}, "greater than 0"),
        ("environment", {"1X": "a"}, "match pattern"),
        ("name", "Big Name", "match pattern"),
    ],
)
def test_what_is_impossible_is_refused_in_words(section: str, values: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(**{section: values})
    assert words in str(caught.value)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(?P<step>", "(" * 5000])
def test_a_pattern_that_cannot_be_compiled_is_refused_not_raised(pattern: str) -> None:
    with pytest.raises(ValidationError, match="is not a regular expression"):
        ProgressSpec.model_validate({"kind": "regex", "pattern": pattern})


def test_a_pattern_needs_a_group_for_the_step() -> None:
    with pytest.raises(ValidationError, match="group named step"):
        ProgressSpec(kind="regex", pattern=r"step (\d+)")


def test_a_ref_needs_a_repository_and_a_folder_excludes_one() -> None:
    with pytest.raises(ValidationError, match="ref needs repo"):
        CodeSpec(ref="main")
    with pytest.raises(ValidationError, match="cannot be combined"):
        CodeSpec(repo="https://example.com/a/b", folder="src")


def test_a_step_may_have_leading_zeros() -> None:
    assert CheckpointSpec(pattern="ckpt-{step:06d}").pattern.format(step=7) == "ckpt-000007"


def test_a_name_is_not_both_in_environment_and_in_secrets() -> None:
    with pytest.raises(ValidationError, match="keep it only there"):
        spec(environment={"HF_HOME": "x"}, secrets=["HF_HOME"])


def test_an_unknown_key_is_refused_everywhere() -> None:
    for model in (HardwareSpec, HealthSpec, CheckpointSpec):
        with pytest.raises(ValidationError, match="Extra inputs"):
            model.model_validate({"odd": 1})


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("/etc/*", "must be a relative path that stays inside the working tree"),
        ("results/../../x", "must be a relative path that stays inside the working tree"),
        ("", "must be a relative path that stays inside the working tree"),
        ("**", "matches the entire working tree; name the files or folders to keep"),
        ("*", "matches the entire working tree"),
        ("**/*", "matches the entire working tree"),
        (".", "matches the entire working tree"),
        ("checkpoints/step_*/weights.npz", "lies inside a checkpoint; checkpoints are uploaded anyway"),
        ("checkpoints/step_100", "lies inside a checkpoint"),
    ],
)
def test_a_pattern_of_outputs_that_would_take_too_much_is_refused_with_what_to_do(
    pattern: str, said: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        spec(outputs=[pattern])


@pytest.mark.parametrize(
    "pattern", ["results/**", "submission.json", "*.csv", "checkpoints/log.txt", "**/*.parquet", "out/[a-c]*"]
)
def test_patterns_of_files_and_folders_are_outputs(pattern: str) -> None:
    assert spec(outputs=[pattern]).outputs == (pattern,)


def test_more_patterns_of_outputs_than_a_person_writes_are_refused() -> None:
    with pytest.raises(ValidationError, match="51 patterns are too many; at most 50"):
        spec(outputs=[f"{number}.csv" for number in range(51)])
