"""The real agent and a fake prime-rl on a machine with one GPU: a kill, and a machine that takes over."""

from pathlib import Path

import psutil

from prime_train.buckets.keys import manifest_key
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.causes import Cause
from tests.agent.attempts import RUN_ID, attempt
from tests.fakes.nvml import Driver
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.ports import port_of_a_server
from tests.fakes.prime_rl.upstream import upstream_in
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec
from tests.waiting import HANG_S


def test_a_run_on_one_gpu_that_is_killed_resumes_on_the_next_machine_and_leaves_no_process(
    tmp_path: Path, driver: Driver
) -> None:
    git, commits = upstream_in(tmp_path / "upstream")
    env = {
        **git,
        **uv_in(tmp_path / "bin"),
        **driver.env,
        "FAKE_RL_GPUS": "1",
        "FAKE_RL_WAITS": f"12@{tmp_path}/go",
    }
    files = {
        "rl.toml": "[inference.server]\nport = "
        f"{port_of_a_server()}\n[inference.vllm]\ngpu_memory_utilization = 0.5\n".encode()
    }
    wanted = prime_rl_spec(
        part={"ref": commits[-1]},
        checkpoints={"every_steps": 5},
        hardware={"gpus": ["H100"], "count": 1, "open_files_min": 256, "disk_gib": 1},
        health={"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
    )
    with attempt(tmp_path, wanted, files=files, env=env) as first:
        first.plane.await_heartbeat(lambda heartbeat: heartbeat.step == 11 and heartbeat.uploaded_step == 10)
        family = first.trainers()
        assert len(family) >= 3, "the shell, the server and the launcher"
        first.agent.kill()
        _, left = psutil.wait_procs(family, timeout=HANG_S)
        assert left == []
    (tmp_path / "go").touch()
    point = ResumePoint(step=10, attempt=1, key=manifest_key(RUN_ID, 10, 1))
    with attempt(tmp_path, wanted, files=files, resume=point, attempt=2, env=env) as second:
        assert second.wait() == 0
        (last,) = second.plane.exits
        assert last.exit is not None
        assert (last.exit.cause, last.step, last.uploaded_step) == (Cause.FINISHED, 20, 20)
