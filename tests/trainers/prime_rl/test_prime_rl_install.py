"""The commands that install prime-rl on a machine."""

import os
import subprocess
from pathlib import Path

import pytest

from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for
from tests.builders import spec
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.upstream import upstream_in
from tests.trainers.prime_rl.prime_rl_spec import REF, prime_rl_spec


@pytest.fixture
def upstream(tmp_path: Path) -> tuple[dict[str, str], list[str]]:
    """Return variables for the commands, and the commits, oldest first."""
    git, commits = upstream_in(tmp_path / "upstream", versions=2)
    return {**os.environ, **git, **uv_in(tmp_path / "bin")}, commits


def setup(wanted: RunSpec) -> tuple[str, ...]:
    return trainer_for(wanted).setup(wanted)


def run_all(commands: tuple[str, ...], work: Path, env: dict[str, str]) -> None:
    for command in commands:
        subprocess.run(["/bin/sh", "-c", command], cwd=work, env=env, check=True, capture_output=True)


def test_the_commit_that_was_requested_is_there_even_if_another_one_was_before(
    tmp_path: Path, upstream: tuple[dict[str, str], list[str]]
) -> None:
    env, commits = upstream
    work = tmp_path / "disk" / "work"
    work.mkdir(parents=True)
    for commit, version in zip((commits[1], commits[0], commits[0]), ("2", "1", "1"), strict=True):
        run_all(setup(prime_rl_spec(part={"ref": commit})), work, env)
        assert (work.parent / "prime-rl" / "VERSION").read_text() == version
    synced = (tmp_path / "bin" / "uv.log").read_text().splitlines()
    assert synced.count("sync --project ../prime-rl --all-extras --frozen --inexact") == 3


def test_the_first_digits_of_a_commit_are_enough(
    tmp_path: Path, upstream: tuple[dict[str, str], list[str]]
) -> None:
    env, commits = upstream
    work = tmp_path / "disk" / "work"
    work.mkdir(parents=True)
    for commit, version in zip((commits[0], commits[1], commits[0]), ("1", "2", "1"), strict=True):
        run_all(setup(prime_rl_spec(part={"ref": commit[:8]})), work, env)
        assert (work.parent / "prime-rl" / "VERSION").read_text() == version


def test_a_commit_that_is_there_is_not_fetched_again(
    tmp_path: Path, upstream: tuple[dict[str, str], list[str]]
) -> None:
    env, commits = upstream
    work = tmp_path / "disk" / "work"
    work.mkdir(parents=True)
    commands = setup(prime_rl_spec(part={"ref": commits[1]}))
    run_all(commands, work, env)
    (tmp_path / "upstream").rename(tmp_path / "unreachable")
    run_all(commands, work, env)


def test_other_kinds_install_nothing() -> None:
    assert setup(spec()) == ()
    assert any(REF in command for command in setup(prime_rl_spec()))
