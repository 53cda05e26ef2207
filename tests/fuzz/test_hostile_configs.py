"""Files made to slow down or break their reader result in findings, and cost little."""

import os
from pathlib import Path

import pytest

from tests.exhaustive import some_of
from tests.fuzz.checking import BYTES_MAX, CPU_S_MAX, Format, Reported, check_bytes, reported
from tests.fuzz.hostile import HOSTILE, Hostile, numbered

SLOW_MACHINE = 5
RUN = """\
name: a
trainer:
  kind: prime_rl
  steps: 3
  code: {{folder: {folder}}}
  prime_rl: {{config: rl.toml, ref: {ref}, overrides: [{overrides}]}}
budget: {{usd: 1}}
"""


@pytest.mark.parametrize(
    "hostile", some_of(HOSTILE, one_in=4), ids=lambda hostile: f"{hostile.name}, {hostile.kind}"
)
def test_a_hostile_file_ends_in_few_findings_at_little_cost(hostile: Hostile) -> None:
    checked = check_bytes(hostile.data(), hostile.kind, [Format.JSON])
    assert hostile.codes <= set(checked.codes)
    assert len(checked.codes) <= 1000
    assert checked.cpu_s <= CPU_S_MAX * SLOW_MACHINE
    assert checked.grown_bytes <= BYTES_MAX


def check_over(folder: Path, overrides: str, *, keys: int = 5) -> Reported:
    """Check a run with these overrides, and a config with this many keys."""
    (folder / "rl.toml").write_text(
        numbered("[orchestrator]\nbatch_size = 8\n[trainer]\n", "some_key_{n} = 1\n", keys)
    )
    run = folder / "run.yaml"
    run.write_text(RUN.format(folder=folder, ref="5a" * 20, overrides=overrides))
    return reported(run, Format.JSON)


def test_a_large_file_that_is_laid_over_many_parts_by_many_names_costs_little(tmp_path: Path) -> None:
    found = check_over(
        tmp_path, ", ".join(f'"--trainer.b{n}", "@", {"./" * n}rl.toml' for n in range(20)), keys=4900
    )
    assert str(tmp_path / "rl.toml") in {row["file"] for row in found.rows}
    assert found.cpu_s <= CPU_S_MAX * SLOW_MACHINE


@pytest.mark.parametrize(
    "name",
    [
        "pipe.toml",
        "folder.toml",
        "zeros.toml",
        "loop.toml",
        "gone.toml",
        "/dev/zero",
        "../run.yaml",
        "a/" * 5000,
    ],
)
def test_what_is_no_file_in_the_tree_is_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "zeros.toml").symlink_to("/dev/zero")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    found = check_over(tmp_path, f'"@", {name}')
    assert {row["line"] for row in found.rows if row["severity"] == "error"} == {6}
    assert all(len(row["message"]) <= 1000 for row in found.rows)


def test_a_run_that_is_laid_over_itself_is_read_once(tmp_path: Path) -> None:
    assert check_over(tmp_path, '"@", run.yaml, "@", run.yaml').cpu_s <= CPU_S_MAX * SLOW_MACHINE


@pytest.mark.parametrize("name", ["pipe.toml", "zeros.yaml", "loop.toml"])
def test_what_is_no_file_is_reported_and_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zeros.yaml").symlink_to("/dev/zero")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    assert [row["code"] for row in reported(tmp_path / name, Format.JSON).rows] == ["PT001"]
