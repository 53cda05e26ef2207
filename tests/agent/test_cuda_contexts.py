"""Making a CUDA context on each GPU, with a driver's own library: refusals, calls that never return, and
libraries that are missing.
"""

import ctypes
from pathlib import Path

import pytest

from prime_agent.gpu.cuda_contexts import LIBRARY, make_contexts
from tests.fakes.nvml import Driver


@pytest.fixture
def cuda(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Return the driver, which processes that are started here find."""
    for name, value in driver.env.items():
        monkeypatch.setenv(name, value)
    return driver


def test_gpus_that_work_have_no_fault_and_the_driver_tells_its_cuda(cuda: Driver) -> None:
    cuda.says(cuda=12080)
    found = make_contexts()
    assert (found.fault, found.cuda) == ("", (12, 8))


def test_every_gpu_that_refuses_is_named_with_the_reason(cuda: Driver) -> None:
    cuda.says(count=3, gpu0_context=2, gpu2_context=214)
    assert make_contexts().fault == (
        "no CUDA context can be made on GPU 0: CUDA_ERROR_OUT_OF_MEMORY; no CUDA context can be made on GPU "
        "2: CUDA error 214"
    )


def test_a_gpu_whose_context_is_never_made_is_named_after_the_limit(cuda: Driver) -> None:
    cuda.says(gpu1_context_hang=1)
    assert (
        make_contexts(limit_s=10).fault
        == "no CUDA context can be made on GPU 1: the driver did not answer within 10 s"
    )


def test_a_driver_that_is_not_ready_is_told_with_its_likely_reason(cuda: Driver) -> None:
    cuda.says(cuda_init=802)
    fault = make_contexts().fault
    assert (
        fault
        == "CUDA cannot be initialised: CUDA_ERROR_SYSTEM_NOT_READY (the machine's fabric manager is not "
        "running)"
    )


def test_where_cuda_shows_no_gpu_that_is_the_fault(cuda: Driver) -> None:
    cuda.says(cuda_count=0)
    assert make_contexts().fault == "CUDA finds no GPU"


def test_a_driver_without_the_library_for_programs_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / LIBRARY).write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(broken))
    assert make_contexts().fault.startswith("CUDA cannot be initialised: ")


@pytest.mark.gpu
def test_a_real_gpu_has_no_fault() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip("there is no driver of a GPU here")
    found = make_contexts()
    assert found.fault == ""
    assert found.cuda >= (11, 0)
