"""What is checked once the setup has ended, with processes: an all-reduce by a torch that fails or hangs, and
inference servers that cannot start. The real torch does it in tests/trainers_real.
"""

import socket
import sys
from pathlib import Path

import pytest

from prime_agent.before_training.phase import Called, CallOff, PhaseError, Shell
from prime_agent.before_training.trainer_checks import check_all_reduce, check_services, in_use
from prime_agent.processes import LocalProcesses
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from tests.agent.attempts import attempt, demo_spec
from tests.builders import spec
from tests.fakes.nvml import Driver
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec

TWO = spec(hardware={"gpus": ["H100"], "count": 2})
TORCH = """
class cuda:
    device_count = staticmethod(lambda: {visible})
    set_device = staticmethod(lambda number: None)
    synchronize = staticmethod(lambda: None)
class Tensor:
    value = 1
    def min(self): return self
    max = min
    def item(self): return self.value
    def numel(self): return 1
    element_size = numel
def ones(count, device): return Tensor()
"""
DISTRIBUTED = """
import os, time
def init_process_group(backend, rank, **more): globals().update(me=rank)
def all_reduce(tensor): {all_reduce}
def barrier(): pass
def destroy_process_group(): pass
"""
ADDS_UP = "tensor.value = 2"


def torch_in(folder: Path, all_reduce: str, *, visible: int = 2) -> str:
    """Write a torch whose all-reduce does that, and return the folder for PYTHONPATH."""
    package = folder / "libs" / "torch" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text(TORCH.format(visible=visible))
    (package / "__init__.py").write_text(DISTRIBUTED.format(all_reduce=all_reduce))
    return str(folder / "libs")


def shell(folder: Path, libraries: str = "", called_off: CallOff | None = None) -> Shell:
    work = folder / "work"
    work.mkdir()
    (work / ".venv" / "bin").mkdir(parents=True)
    (work / ".venv" / "bin" / "python").symlink_to(sys.executable)
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": libraries}
    return Shell(LocalProcesses("checks"), work, env, folder / "setup.log", called_off or CallOff())


def fault_of(wanted: RunSpec, where: Shell, **limits: float) -> tuple[Cause, str]:
    with pytest.raises(PhaseError) as caught:
        check_all_reduce(wanted, where, **limits)
    return caught.value.cause, caught.value.detail


def test_gpus_that_add_up_are_told_with_their_speed(tmp_path: Path) -> None:
    said = check_all_reduce(TWO, shell(tmp_path, torch_in(tmp_path, ADDS_UP)))
    assert said.startswith("all-reduce by nccl on 2 GPUs: ")
    assert said.endswith(" GB/s")


def test_an_error_of_one_gpu_is_the_machines_fault_and_the_other_is_not_waited_for(tmp_path: Path) -> None:
    fails = (
        "exec(\"raise RuntimeError('NCCL error: peer access is not supported')\") if me == 1 else "
        "time.sleep(3600)"
    )
    cause, detail = fault_of(TWO, shell(tmp_path, torch_in(tmp_path, fails)))
    assert cause is Cause.ALL_REDUCE_FAILED
    assert (
        detail
        == "all-reduce by nccl on 2 GPUs: process 1 failed: RuntimeError: NCCL error: peer access is not "
        "supported (code 1)"
    )


def test_a_process_that_is_killed_is_told_with_its_signal(tmp_path: Path) -> None:
    _, detail = fault_of(TWO, shell(tmp_path, torch_in(tmp_path, "os.kill(os.getpid(), 7)")))
    assert "failed: (signal 7)" in detail or "(signal 7)" in detail


def test_an_all_reduce_that_hangs_ends_at_its_limit_and_leaves_no_process(tmp_path: Path) -> None:
    hangs = "open(f'../pid-{me}', 'w').write(str(os.getpid())) and time.sleep(3600)"
    cause, detail = fault_of(TWO, shell(tmp_path, torch_in(tmp_path, hangs)), limit_s=1)
    assert cause is Cause.ALL_REDUCE_FAILED
    assert detail == "all-reduce by nccl on 2 GPUs: no sum within 1 s (processes 0, 1 still wait)"
    for path in tmp_path.glob("pid-*"):
        assert not Path(f"/proc/{path.read_text()}").exists()


def test_a_wrong_sum_is_a_fault(tmp_path: Path) -> None:
    _, detail = fault_of(TWO, shell(tmp_path, torch_in(tmp_path, "tensor.value = 1")))
    assert "the sum of 2 ones is between 1 and 1" in detail


@pytest.mark.parametrize(
    ("visible", "said"),
    [(None, "torch cannot be imported by "), (1, "no all-reduce was tried: torch sees one GPU")],
    ids=["none", "one"],
)
def test_where_it_cannot_be_tried_that_is_said(tmp_path: Path, visible: int | None, said: str) -> None:
    libraries = torch_in(tmp_path, ADDS_UP, visible=visible) if visible else ""
    assert said in check_all_reduce(TWO, shell(tmp_path, libraries))


def test_modules_of_the_working_tree_are_not_taken_for_torch(tmp_path: Path) -> None:
    where = shell(tmp_path, torch_in(tmp_path, ADDS_UP))
    (where.cwd / "torch.py").write_text("raise SystemExit(9)")
    (where.cwd / "json.py").write_text("raise SystemExit(9)")
    assert check_all_reduce(TWO, where).startswith("all-reduce by nccl on 2 GPUs: ")


def test_a_check_that_is_called_off_concludes_nothing(tmp_path: Path) -> None:
    called_off = CallOff()
    called_off.now()
    with pytest.raises(Called):
        check_all_reduce(TWO, shell(tmp_path, torch_in(tmp_path, ADDS_UP), called_off))


def test_a_machine_whose_gpus_cannot_exchange_data_is_given_back_before_training(
    tmp_path: Path, driver: Driver
) -> None:
    libraries = torch_in(tmp_path, "raise RuntimeError('NCCL error: unhandled system error')")
    wanted = demo_spec(
        "--steps 4", hardware={"gpus": ["H100"], "count": 2}, environment={"PYTHONPATH": libraries}
    )
    with attempt(tmp_path, wanted, env=driver.env) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.ALL_REDUCE_FAILED
        assert "NCCL error: unhandled system error" in last.exit.detail
        assert "NCCL error: unhandled system error" in here.log("setup.log")


# ----------------------------------------------------------------------------------------------------------
# inference servers


def serving(port: int) -> RunSpec:
    return prime_rl_spec(
        part={"overrides": ["--inference.server.port", str(port)]}, hardware={"gpus": ["H100"], "count": 2}
    )


def engine_in(folder: Path, code: str) -> None:
    """Install a vllm beside the working tree, as prime-rl is."""
    libs, python = folder / "vllm-libs", folder / "prime-rl" / ".venv" / "bin" / "python"
    for name, text in {
        "vllm/__init__.py": code,
        "vllm/platforms.py": "class current_platform: device_type = 'cuda'",
    }.items():
        (libs / name).parent.mkdir(parents=True, exist_ok=True)
        (libs / name).write_text(text)
    (libs / "vllm-0.14.0.dist-info").mkdir()
    (libs / "vllm-0.14.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm\nVersion: 0.14.0\n"
    )
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={libs} exec {sys.executable} "$@"\n')
    python.chmod(0o755)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


def ready(folder: Path) -> Shell:
    where = shell(folder)
    (where.cwd / "rl.toml").write_text("[inference]\n")
    return where


def test_a_port_on_which_somebody_listens_is_found_before_the_server_needs_it(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = int(listener.getsockname()[1])
        assert in_use(port)
        with pytest.raises(PhaseError) as caught:
            check_services(serving(port), ready(tmp_path))
    assert caught.value.cause is Cause.PORT_IN_USE
    assert (
        caught.value.detail
        == f"port {port}, on which the inference server is to listen, is in use on this machine"
    )


def test_an_engine_that_loads_is_told_with_its_version(tmp_path: Path, free_port: int) -> None:
    engine_in(tmp_path, "")
    assert (
        check_services(serving(free_port), ready(tmp_path))
        == "the inference engine loads: vllm 0.14.0 on cuda"
    )


def test_an_engine_that_does_not_load_ends_the_attempt_with_its_error(tmp_path: Path, free_port: int) -> None:
    engine_in(tmp_path, "raise ImportError('libcudart.so.13: cannot open shared object file')")
    with pytest.raises(PhaseError) as caught:
        check_services(serving(free_port), ready(tmp_path))
    assert caught.value.cause is Cause.INFERENCE_FAILED
    assert caught.value.detail == (
        "vllm 0.14.0 cannot be loaded: ImportError: libcudart.so.13: cannot open shared object file"
    )


def test_where_no_engine_is_found_nothing_is_concluded_and_that_is_said(
    tmp_path: Path, free_port: int
) -> None:
    assert "there is no vllm where it was looked for" in check_services(serving(free_port), ready(tmp_path))


def test_a_run_without_services_has_nothing_to_check(tmp_path: Path) -> None:
    assert check_services(TWO, shell(tmp_path)) == ""
