"""What a spec of kind prime_rl fills in, and what it refuses."""

from typing import Any

import pytest
from pydantic import ValidationError

from prime_train.spec.reader import read_text
from prime_train.spec.spec import RunSpec
from prime_train.trainers.prime_rl.conventions import OURS, refused
from tests.builders import spec
from tests.trainers.prime_rl.prime_rl_spec import REF, prime_rl_spec


def test_where_it_saves_and_what_completes_a_checkpoint_need_not_be_reported() -> None:
    made = prime_rl_spec()
    assert made.checkpoints.folder == "outputs/tiny/checkpoints"
    assert (made.checkpoints.sentinel, made.checkpoints.pattern) == ("trainer/.metadata", "step_{step}")
    assert made.checkpoints.files == ("trainer/.metadata", "orchestrator/progress.pt")
    assert made.trainer.progress.file == "outputs/tiny/metrics.jsonl"
    assert made.trainer.command == ""


def test_another_folder_and_name_are_followed() -> None:
    made = prime_rl_spec(
        part={"output": "out/", "run_name": "exp.7"}, checkpoints={"keep": 2, "every_steps": 5}
    )
    assert made.checkpoints.folder == "out/exp.7/checkpoints"
    assert (made.checkpoints.keep, made.checkpoints.every_steps) == (2, 5)
    assert prime_rl_spec(part={"output": "."}).checkpoints.folder == "tiny/checkpoints"


def test_a_spec_that_was_sent_and_one_that_was_renamed_still_say_the_same_places() -> None:
    made = prime_rl_spec()
    assert RunSpec.model_validate_json(made.model_dump_json()) == made
    renamed = RunSpec.model_validate({**made.model_dump(), "name": "other"})
    assert renamed.checkpoints.folder == "outputs/tiny/checkpoints"
    assert renamed.trainer.prime_rl == made.trainer.prime_rl


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": None}, "steps: kind prime_rl needs the number of steps"),
        (
            {"trainer": {"prime_rl": None}},
            "prime_rl: kind prime_rl needs this section, and other kinds do not allow it",
        ),
        ({"trainer": {"command": "rl @ other.toml"}}, "command: kind prime_rl has its own"),
        ({"part": {"ref": "main"}}, "match pattern"),
        ({"part": {"config": "/rl.toml"}}, "must be a relative path"),
        ({"part": {"run_name": "a/../b"}}, "match pattern"),
        ({"part": {"overrides": ["--resume"]}}, "the checkpoint to resume is chosen from the bucket"),
        ({"part": {"overrides": ["--run.name", "x"]}}, "use trainer.prime_rl.run_name"),
        (
            {"checkpoints": {"folder": "ckpt"}},
            "checkpoints.folder: kind prime_rl requires outputs/tiny/checkpoints, not ckpt",
        ),
        (
            {"checkpoints": {"pattern": "global_step_{step}"}},
            "checkpoints.pattern: kind prime_rl requires step_{step}",
        ),
        (
            {"checkpoints": {"sentinel": "STABLE"}},
            "checkpoints.sentinel: kind prime_rl requires trainer/.metadata",
        ),
        ({"trainer": {"kind": "command"}}, "Field required"),
        ({"part": {"output": 3}}, "valid string"),
    ],
)
def test_what_would_not_work_is_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        prime_rl_spec(**changes)
    assert words in str(caught.value)


TEXT = f"""\
name: tiny
trainer:
  kind: prime_rl
  steps: 200
  prime_rl:
    config: rl.toml
    ref: {REF}
    overrides: [--trainer.optim.lr, "1e-5"]
budget: {{usd: 20}}
checkpoints: {{every_steps: 10, keep: 2}}
"""


def test_a_file_of_this_kind_is_read_and_its_errors_are_found_where_they_are() -> None:
    read = read_text(TEXT, "run.yaml")
    assert read.findings == ()
    assert read.spec is not None
    assert read.spec.trainer.prime_rl is not None
    assert read.spec.trainer.prime_rl.overrides == ("--trainer.optim.lr", "1e-5")
    (finding,) = read_text(TEXT.replace("[--trainer.optim.lr", "[--resume"), "run.yaml").findings
    assert "the checkpoint to resume is chosen from the bucket" in finding.message
    assert finding.line == 8


def test_other_kinds_still_need_a_command_and_take_no_part_of_prime_rl() -> None:
    with pytest.raises(ValidationError) as caught:
        spec(trainer={"command": "python train.py", "prime_rl": {"config": "rl.toml", "ref": REF}})
    assert "other kinds do not allow it" in str(caught.value)
    with pytest.raises(ValidationError) as caught:
        RunSpec.model_validate({"name": "tiny", "trainer": {"kind": "torchrun"}, "budget": {"usd": 5.0}})
    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [
        (("trainer", "command"), "missing")
    ]


@pytest.mark.parametrize(
    "argument",
    [*OURS, "--resume.step=3", "--ckpt.output_dir", "--run.dir", "--no-monitors.file", "--output_dir"],
)
def test_arguments_that_are_ours_to_give_are_refused(argument: str) -> None:
    assert refused(argument)


@pytest.mark.parametrize(
    "argument",
    ["--trainer.optim.lr", "1e-5", "--ckpt.keep-last", "@", "more.toml", "--resumes", "--runtime.x"],
)
def test_other_arguments_are_the_users(argument: str) -> None:
    assert refused(argument) is None
