"""The all-reduce before training by the real torch: NCCL where there are GPUs, otherwise gloo."""

import os
from pathlib import Path

import pytest

from prime_agent.before_training.phase import CallOff, PhaseError, Shell
from prime_agent.before_training.trainer_checks import check_all_reduce
from prime_agent.processes import LocalProcesses
from prime_train.spec.causes import Cause
from tests.builders import spec
from tests.trainers_real.machine_taken_away import TRAINERS

TWO = spec(hardware={"gpus": ["H100"], "count": 2})


def shell(folder: Path, **environment: str) -> Shell:
    env = {**os.environ, "PATH": f"{TRAINERS}:{os.environ['PATH']}", **environment}
    return Shell(LocalProcesses("all-reduce"), folder, env, folder / "setup.log", CallOff())


def test_two_processes_add_up(tmp_path: Path) -> None:
    said = check_all_reduce(TWO, shell(tmp_path))
    assert said.startswith(
        (
            "all-reduce by nccl on 2 GPUs: 64 MiB at ",
            "all-reduce by gloo on 2 processes without GPUs, because torch sees none: ",
        )
    )


def test_processes_that_cannot_reach_each_other_are_a_fault_with_torchs_error(tmp_path: Path) -> None:
    with pytest.raises(PhaseError) as caught:
        check_all_reduce(
            TWO,
            shell(
                tmp_path,
                GLOO_SOCKET_IFNAME="none0",
                NCCL_SOCKET_IFNAME="none0",
                NCCL_P2P_DISABLE="1",
                NCCL_SHM_DISABLE="1",
            ),
        )
    assert caught.value.cause is Cause.ALL_REDUCE_FAILED
    assert "failed: " in caught.value.detail
