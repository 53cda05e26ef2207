"""The table of variables by version: which rows apply to which libraries and machines, and that a config has
the last word.
"""

import re
from urllib.parse import urlsplit

import pytest

from prime_train.estimate.gpus import RENTED, facts
from prime_train.trainers.conventions.environment_by_version import (
    LIBRARIES,
    SHM_BYTES_MIN,
    TABLE,
    RunMachine,
    chosen,
    machine,
    numbers,
    possible,
)
from tests.builders import spec

H100, RTX4090 = "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"
ROOMY = 64 * 2**30


def variables(
    gpus: tuple[str, ...],
    installed: dict[str, str],
    *,
    workers: int = 1,
    shm: int | None = ROOMY,
    present: tuple[str, ...] = (),
) -> dict[str, str]:
    return {row.variable: row.value for row in chosen(RunMachine(gpus, workers), installed, shm, present)}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.1.2", set()),
        ("2.2.0", {"PYTORCH_CUDA_ALLOC_CONF"}),
        ("2.4.1+cu121", {"PYTORCH_CUDA_ALLOC_CONF", "TORCHINDUCTOR_FX_GRAPH_CACHE"}),
        ("2.9.1+cu128", {"PYTORCH_CUDA_ALLOC_CONF"}),
        ("2.10.0", {"PYTORCH_CUDA_ALLOC_CONF"}),
        ("2.11.0+cu130", {"PYTORCH_ALLOC_CONF"}),
        ("2.12.0a0+git1", {"PYTORCH_ALLOC_CONF"}),
        ("unknown", set()),
    ],
)
def test_the_allocator_is_set_under_the_name_that_this_torch_reads(version: str, expected: set[str]) -> None:
    assert variables((H100,), {"torch": version}).keys() == expected


@pytest.mark.parametrize("other", ["vllm", "sglang"])
def test_the_allocator_is_left_alone_beside_libraries_with_pools_of_their_own(other: str) -> None:
    assert "PYTORCH_CUDA_ALLOC_CONF" not in variables((H100,), {"torch": "2.8.0", other: "0.11.0"})


@pytest.mark.parametrize("name", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"])
@pytest.mark.parametrize("version", ["2.8.0", "2.12.0"])
def test_a_setting_that_is_there_under_any_of_its_names_turns_the_row_off(name: str, version: str) -> None:
    assert variables((H100,), {"torch": version}, present=(name,)) == {}


def test_every_row_is_turned_off_by_its_own_variable() -> None:
    for gpu in (H100, RTX4090):
        for row in possible(RunMachine((gpu,) * 8, 8)):
            assert row.variable not in {
                one.variable for one in possible(RunMachine((gpu,) * 8, 8), (row.variable,))
            }


def test_nccl_is_set_up_for_the_gpus_of_this_machine() -> None:
    torch = {"torch": "2.1.0"}
    assert variables((RTX4090,), torch) == {}
    assert variables((RTX4090,) * 2, torch) == {"NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1"}
    assert variables(("NVIDIA GeForce RTX 5090",) * 2, torch) == {"NCCL_IB_DISABLE": "1"}
    assert variables(("NVIDIA GeForce RTX 3090",) * 2, torch) == {}, "they may have a bridge"
    assert variables((H100,) * 8, torch) == {}
    assert variables((RTX4090, H100), torch) == {}


@pytest.mark.parametrize(
    ("gpus", "shm", "is_set"),
    [(4, 64 * 2**20, True), (4, SHM_BYTES_MIN, False), (4, None, False), (2, 2**20, False)],
)
def test_nccl_goes_without_shared_memory_only_where_it_does_not_fit(
    gpus: int, shm: int | None, is_set: bool
) -> None:
    assert ("NCCL_SHM_DISABLE" in variables((RTX4090,) * gpus, {"torch": "2.1.0"}, shm=shm)) == is_set


def test_tokenizers_and_vllm() -> None:
    assert variables((H100,), {"tokenizers": "0.21.0"}) == {}
    assert variables((H100,), {"tokenizers": "0.21.0"}, workers=2) == {"TOKENIZERS_PARALLELISM": "false"}
    assert variables((H100,), {"vllm": "0.11.0"}) == {}
    assert variables((H100,), {"vllm": "0.12.0"}) == {"VLLM_ENGINE_READY_TIMEOUT_S": "1800"}
    assert variables((H100,), {"vllm": "0.26.0", "prime-rl": "0.4.0"}) == {}, (
        "its launcher has a longer limit"
    )


def test_a_trainer_that_starts_its_own_processes_has_one_for_each_gpu() -> None:
    assert machine(spec(), (H100,) * 4).workers == 4
    assert machine(spec(trainer={"kind": "torchrun", "command": "train.py", "workers": 2}), ()).workers == 2


def test_offers_and_drivers_name_the_same_gpus() -> None:
    """No rented kind that the data sheets give NVLink counts as one without, and every GeForce of the last
    two series does.
    """
    without = {kind for kind in RENTED if variables((kind,) * 2, {"torch": "2.1.0"})}
    assert [kind for kind in without if (sheet := facts(kind)) is not None and sheet.linked] == []
    assert {kind for kind in RENTED if re.match(r"RTX[45]0[5-9]0|L4|RTX_PRO", kind)} <= without
    assert {"RTX3090_24GB", "A6000_48GB", "H100_80GB", "RTX4000_8GB"}.isdisjoint(without)


def test_every_row_names_its_source_and_its_library_is_asked_for() -> None:
    for row in TABLE:
        assert urlsplit(row.source).scheme == "https", row
        assert row.library in LIBRARIES
        assert not row.before or row.since < row.before


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.11.0+cu130", (2, 11, 0)),
        ("2.9.0a0+git", (2, 9, 0)),
        ("0.12.0rc1", (0, 12, 0)),
        ("", ()),
        ("x.1", ()),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, expected: tuple[int, ...]) -> None:
    assert numbers(version) == expected
