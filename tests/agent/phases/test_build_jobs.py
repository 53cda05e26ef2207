"""How many compiler processes the set-up may start at once."""

import os
from pathlib import Path

import pytest

from prime_agent.before_training.setup import free_bytes
from prime_train.trainers.conventions.kernels import build_jobs
from tests.agent.attempts import attempt, demo_spec

GIB = 2**30


@pytest.mark.parametrize(
    ("cores", "gib", "jobs"), [(64, 96, 10), (8, 1000, 4), (2, 4, 1), (1, 64, 1), (128, 8, 1)]
)
def test_memory_and_cores_limit_the_compilers(cores: int, gib: int, jobs: int) -> None:
    assert build_jobs(cores, gib * GIB) == jobs


def test_the_limit_of_the_container_counts_where_it_is_lower(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("1000\n")
    assert free_bytes(limit) == 1000
    limit.write_text("max\n")
    assert free_bytes(limit) == pytest.approx(free_bytes(tmp_path / "none"), rel=0.5)


@pytest.mark.parametrize("own", ["", "3"])
def test_the_set_up_gets_the_number_unless_the_config_sets_one(tmp_path: Path, own: str) -> None:
    spec = demo_spec(
        "--steps 20 --save-every 10",
        setup=["echo jobs=$MAX_JOBS."],
        environment={"MAX_JOBS": own} if own else {},
    )
    with attempt(tmp_path, spec) as here:
        assert here.wait() == 0
        jobs = here.log("setup.log").partition("jobs=")[2].partition(".")[0]
    assert jobs == own or (not own and 1 <= int(jobs) <= max(1, (os.cpu_count() or 1) // 2))
