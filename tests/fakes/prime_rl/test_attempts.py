"""The real agent with a trainer of kind prime_rl: one attempt that crashes, and one that takes over on
another machine.
"""

from pathlib import Path

import pytest

from prime_train.buckets.keys import manifest_key
from prime_train.checkpoints.catalog import read_manifest
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.causes import Cause
from tests.agent.attempts import RUN_ID, attempt
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.upstream import upstream_in
from tests.trainers.prime_rl.prime_rl_spec import FOLDER, prime_rl_spec

FILES = {"rl.toml": b'[model]\nname = "Qwen/Qwen3-0.6B"\n'}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    git, commits = upstream_in(tmp_path / "upstream")
    return {**git, **uv_in(tmp_path / "bin"), "REF": commits[-1]}


def test_after_a_crash_the_newest_complete_checkpoint_is_in_the_bucket_and_another_machine_ends_the_run(
    tmp_path: Path, env: dict[str, str]
) -> None:
    wanted = prime_rl_spec(
        part={"ref": env["REF"]},
        checkpoints={"every_steps": 5},
        hardware={"open_files_min": 256, "disk_gib": 1},
        health={"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
    )
    with attempt(tmp_path, wanted, files=FILES, env={**env, "FAKE_RL_DIES": "oom@14"}) as first:
        assert first.wait() == 0
        (last,) = first.plane.exits
        assert last.exit is not None
        assert (last.exit.code, last.step) == (1, 13)
        assert first.plane.commits[-1].step == 10
        assert (first.disk / "work" / FOLDER / "checkpoints" / "step_15").exists()
    point = ResumePoint(step=10, attempt=1, key=manifest_key(RUN_ID, 10, 1))
    with attempt(tmp_path, wanted, files=FILES, resume=point, attempt=2, env=env) as second:
        assert second.wait() == 0
        (last,) = second.plane.exits
        assert last.exit is not None
        assert (last.exit.cause, last.step, last.uploaded_step) == (Cause.FINISHED, 20, 20)
        manifest = read_manifest(second.bucket, second.plane.commits[-1].key)
        assert manifest is not None
        assert manifest.loss == pytest.approx(0.1)
        assert manifest.reward == pytest.approx(0.2)
