"""prime-rl on a machine with one GPU: its launcher refuses it, and prime-train starts the server beside
it.
"""

import re
import signal
from pathlib import Path

import psutil
import pytest

from prime_train.spec.causes import Cause
from tests.fakes.prime_rl.ports import port_of_a_server
from tests.fakes.prime_rl.running import Machine
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec
from tests.waiting import HANG_S

ONE = {"gpus": ["H100"], "count": 1}


def one_gpu(folder: Path, *, share: float = 0.5, hardware: dict[str, object] = ONE, **more: str) -> Machine:
    toml = (
        f"[inference.server]\nport = {port_of_a_server()}\n[inference.vllm]\ngpu_memory_utilization "
        "= "
        f"{share}\n"
    )
    spec = prime_rl_spec(checkpoints={"every_steps": 5}, hardware=hardware)
    return Machine(folder / "disk", spec, toml, {"FAKE_RL_GPUS": "1", **more})


def server_log(machine: Machine) -> Path:
    (log,) = (
        machine.work / path
        for path in machine.trainer.log_files(machine.spec)
        if path.endswith("inference.log")
    )
    return log


def server(machine: Machine) -> psutil.Process:
    found = re.search(r"the server is process (\d+)", server_log(machine).read_text())
    assert found is not None
    return psutil.Process(int(found.group(1)))


def test_the_launcher_alone_refuses_a_machine_with_one_gpu(tmp_path: Path) -> None:
    ended = one_gpu(tmp_path, hardware={}).launch()
    assert ended.code == 1
    assert (
        "Requested 2 GPUs via deployment settings, but only 1 physical GPU(s) are available: [0]"
        in ended.lines[-1]
    )


def test_on_one_gpu_the_server_starts_first_and_ends_with_the_training(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path, FAKE_RL_SERVER_S="1.5")
    ended = machine.launch()
    assert ended.code == 0, ended.lines
    assert machine.made() == list(range(1, 21))
    with pytest.raises(psutil.NoSuchProcess):
        server(machine)


def test_after_a_crash_on_one_gpu_the_run_resumes_where_it_saved(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path)
    crashed = machine.launch(dies="oom@14")
    assert (crashed.code, machine.cause(crashed)) == (1, Cause.GPU_OOM)
    machine.tidy(10)
    assert machine.launch(10).code == 0
    assert machine.made()[13:] == list(range(11, 21))


def test_a_server_that_takes_too_much_of_the_gpu_leaves_the_trainer_out_of_memory(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path, share=0.9)
    ended = machine.launch()
    assert (ended.code, machine.cause(ended)) == (1, Cause.GPU_OOM)


def test_a_server_that_cannot_start_is_named_with_its_own_last_line(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path)
    (holder := machine.disk / "bin" / "gpu0.json").write_text(f"[{psutil.Process().pid}, 0.2]")
    ended = machine.launch()
    assert (ended.code, machine.cause(ended)) == (1, Cause.INFERENCE_OOM)
    assert "Error: Inference failed with exit code 1" in ended.lines
    assert "less than desired GPU memory utilization" in server_log(machine).read_text()
    holder.unlink()


def test_when_the_server_dies_the_training_does_not_wait_for_ever(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path, FAKE_RL_WAITS=f"9@{tmp_path}/go")
    with machine.launched() as process:
        assert process.stdout is not None
        while not any(line.startswith("12:00:00 SUCCESS Step 10") for line in process.stdout):
            pass
        server(machine).kill()
        assert "Error: Inference failed with exit code 137" in process.stdout.read()
        assert process.wait(HANG_S) == 1


def test_one_signal_ends_all_its_processes(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path, FAKE_RL_WAITS=f"9@{tmp_path}/go")
    with machine.launched() as process:
        assert process.stdout is not None
        while not any(line.startswith("12:00:00 SUCCESS Step 10") for line in process.stdout):
            pass
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 1
        _, left = psutil.wait_procs(family, timeout=HANG_S)
        assert left == []


def test_a_config_without_a_server_is_started_by_the_launcher_alone(tmp_path: Path) -> None:
    machine = one_gpu(tmp_path)
    (machine.work / "rl.toml").write_text(
        f'[orchestrator.model.client]\nbase_url = "http://localhost:{port_of_a_server()}/v1"\n'
    )
    ended = machine.launch()
    assert (ended.code, machine.cause(ended)) == (1, Cause.INFERENCE_FAILED)
    assert not server_log(machine).exists()
