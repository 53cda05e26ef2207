"""What the formats themselves say is missing from a checkpoint."""

import json
import shutil
from pathlib import Path

import pytest

from prime_agent.checkpoints.integrity import violation_of
from prime_agent.checkpoints.listing import files_in
from tests.agent.checkpoints.formats import tensors, zipped
from tests.agent.checkpoints.saving import DCP, write

INDEX = json.dumps(
    {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
).encode()
WHOLE = {
    "model-00001-of-00002.safetensors": tensors(b"a"),
    "model-00002-of-00002.safetensors": tensors(b"b"),
    "model.safetensors.index.json": INDEX,
}
STATES = {f"global_step10/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": zipped(b"o") for rank in range(3)}
DEEPSPEED = {**STATES, "global_step10/mp_rank_00_model_states.pt": zipped(b"m"), "latest": b"global_step10"}


def violation(folder: Path) -> str:
    return violation_of(folder, files_in(folder)) or ""


@pytest.mark.parametrize("files", [WHOLE, DEEPSPEED, {"latest": b"global_step10"}, {"notes.bin.txt": b""}])
def test_a_whole_checkpoint_has_no_violation(tmp_path: Path, files: dict[str, bytes]) -> None:
    assert violation(write(tmp_path, files)) == ""


@pytest.mark.parametrize(
    ("files", "gone", "what"),
    [
        (
            WHOLE,
            ["model-00002-of-00002.safetensors"],
            "refers to model-00002-of-00002.safetensors, which does not exist",
        ),
        (
            WHOLE,
            [name for name in WHOLE if not name.endswith(".json")],
            "refers to model-00001-of-00002.safetensors",
        ),
        (DEEPSPEED, [list(STATES)[1]], "zero_pp_rank_1_mp_rank_00_optim_states.pt: does not exist"),
        (
            DEEPSPEED,
            ["global_step10/mp_rank_00_model_states.pt"],
            "mp_rank_00_model_states.pt: does not exist",
        ),
    ],
)
def test_a_file_that_the_format_lists_must_be_there(
    tmp_path: Path, files: dict[str, bytes], gone: list[str], what: str
) -> None:
    write(tmp_path, files)
    for name in gone:
        (tmp_path / name).unlink()
    assert what in violation(tmp_path)


@pytest.mark.parametrize("content", [b"{}", b'{"weight_map": {}}', b'{"weight_map": []}', b"[]"])
def test_an_index_that_lists_nothing_is_none(tmp_path: Path, content: bytes) -> None:
    assert "lists no file" in violation(write(tmp_path, {**WHOLE, "model.safetensors.index.json": content}))


@pytest.mark.parametrize(
    "name", ["weights.bin", "model.safetensors", "a.pt", "a.pth", "a.ckpt", "a.npy", "__0_0.distcp", "a.gguf"]
)
def test_no_file_of_weights_is_empty(tmp_path: Path, name: str) -> None:
    assert name in violation(write(tmp_path, {name: b""}))


def test_the_newest_folder_that_deepspeed_names_must_be_there(tmp_path: Path) -> None:
    assert "refers to the folder global_step20" in violation(
        write(tmp_path, {**DEEPSPEED, "latest": b"global_step20\n"})
    )


@pytest.mark.parametrize("gone", [["__0_0.distcp"], ["__1_0.distcp"], ["__0_0.distcp", "__1_0.distcp"]])
def test_the_metadata_of_a_distributed_checkpoint_lists_its_shards(tmp_path: Path, gone: list[str]) -> None:
    shutil.copytree(DCP / "trainer", tmp_path / "trainer")
    assert violation(tmp_path) == ""
    for name in gone:
        (tmp_path / "trainer" / name).unlink()
    assert f"refers to {gone[0]}" in violation(tmp_path)


def test_a_metadata_file_of_another_program_lists_nothing(tmp_path: Path) -> None:
    assert violation(write(tmp_path, {".metadata": b"other", "weights.pt": zipped(b"w")})) == ""
