"""From which checkpoints of another run a run can start: what its trainer could not continue from is refused
before the launch.
"""

from typing import Any

import pytest

from prime_train.checkpoints.manifest import Chunk, Manifest, ManifestFile
from prime_train.errors import UsageError
from prime_train.launch.start import Start, check_start
from prime_train.runs.run import Ancestor, Lineage
from prime_train.spec.spec import RunSpec
from tests.builders import RUN_ID, digest, spec

AREAL = {"kind": "areal", "command": "python train.py --config grpo.yaml"}
ON_TWO = {"gpus": ["H100_80GB"], "count": 2}


def start(theirs: RunSpec | None, *paths: str, folder: str = "step_10", gpus: int | None = None) -> Start:
    """Return a checkpoint of step 10 with these files."""
    chunk = Chunk(digest=digest(1), size=4, stored=4)
    files = tuple(ManifestFile(path=path, size=4, chunks=(chunk,)) for path in (*paths, "weights"))
    manifest = Manifest(run=RUN_ID, attempt=1, step=10, created_s=1, folder=folder, files=files)
    return Start(manifest, Lineage((Ancestor(RUN_ID, 10),), RUN_ID), theirs, gpus)


def refused(found: Start, ours: RunSpec) -> UsageError:
    with pytest.raises(UsageError) as caught:
        check_start(found, ours)
    return caught.value


def with_command(command: str) -> RunSpec:
    return spec(trainer={"command": command})


@pytest.mark.parametrize("theirs", [spec(), None])
def test_a_run_of_the_same_trainer_starts_also_if_the_sources_spec_is_lost(theirs: RunSpec | None) -> None:
    check_start(start(theirs), spec(trainer={"command": "python train.py --lr 1e-5", "steps": 11}))


@pytest.mark.parametrize(
    ("there", "here", "key"),
    [
        (
            "python t.py --model_name_or_path a/b",
            "python t.py --model_name_or_path a/c",
            "model_name_or_path",
        ),
        (
            "python t.py --model-name-or-path=a/b",
            "python t.py --model_name_or_path a/c --lr 1",
            "model_name_or_path",
        ),
        ("python t.py model.path=a/b", "python t.py +model.path=a/c", "model.path"),
    ],
)
def test_another_model_is_refused(there: str, here: str, key: str) -> None:
    error = refused(start(with_command(there)), with_command(here))
    assert f"it is of another model: {key} is a/b there and a/c here" in str(error)
    check_start(start(with_command(there)), with_command(there + " --lr 2"))


def test_commands_that_do_not_name_a_model_are_not_compared() -> None:
    check_start(
        start(with_command("python t.py --model")), with_command("python t.py --model_name_or_path a/c 'it'")
    )


@pytest.mark.parametrize(("gpus", "is_refused"), [(4, True), (2, False), (None, False)])
def test_a_kind_that_restores_only_on_as_many_gpus_is_held_to_them(
    gpus: int | None, is_refused: bool
) -> None:
    ours = spec(trainer=AREAL, hardware=ON_TWO)
    found = start(spec(trainer=AREAL), *ours.checkpoints.files, gpus=gpus)
    why = "it was saved on 4 GPUs, the config wants 2" if is_refused else "it lacks a file"
    assert why in str(refused(found, ours)), "the files of the state come after the GPUs, and are not there"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"trainer": {"command": "python t.py", "steps": 10}}, "nothing is left to train"),
        ({"checkpoints": {"pattern": "checkpoint-{step}"}}, "the trainer would look for checkpoint-10"),
        ({"checkpoints": {"files": ["optimizer.pt"]}}, "it lacks a file"),
    ],
)
def test_what_the_trainer_would_not_find_is_refused_with_a_remedy(changes: dict[str, Any], why: str) -> None:
    error = refused(start(spec()), spec(**changes))
    assert why in str(error)
    assert error.fix
