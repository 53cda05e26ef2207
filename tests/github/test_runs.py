"""Runs are launched, told of and stopped by the workflows, as act runs them, with a control plane and a GitHub of their own processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.github.act import Ran, Step, needs_act
from tests.github.workplace import REPO, Workplace

pytestmark = needs_act

SMALL = """\
name: small
trainer:
  command: python train.py
  steps: 20
  tree: {folder: "."}
checkpoints: {folder: out, marker: COMPLETE, every_steps: 5}
hardware: {open_files_min: 256, disk_gib: 1, usd_per_hour_max: 2}
budget: {usd: 5, hours: 2}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A control plane that nobody watches, and the variables that lead to it."""
    folder = tmp_path / "plane"
    folder.mkdir()
    shell = Shell(folder)
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        yield dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())


@pytest.fixture
def here(workplace: Workplace, plane: dict[str, str]) -> Workplace:
    """With a pull request; ann may push, bob may not."""
    workplace.variables |= {"PRIME_TRAIN_URL": plane["PRIME_TRAIN_STORE"], "PRIME_TRAIN_ON_LABEL": "true"}
    workplace.secrets["PRIME_TRAIN_MASTER_KEY"] = plane["PRIME_TRAIN_MASTER_KEY"]
    workplace.github.add_user("ann", repo=REPO, role="write")
    workplace.github.add_user("bob", repo=REPO, role="read")
    workplace.branch("change")
    workplace.push({"configs/small.yaml": SMALL, "train.py": "print('hello')\n"})
    workplace.github.add_pull(REPO, "change", author="ann")
    return workplace


def launched(here: Workplace) -> Step:
    here.github.label(REPO, 1, "train", by="ann")
    return did(here.run("launch.yml", "pull_request"), "launch configs/small.yaml", "launch")


def commanded(here: Workplace, by: str, body: str) -> Ran:
    here.github.comment(REPO, 1, author=by, body=body)
    return here.run("stop.yml", "issue_comment")


def did(ran: Ran, job: str, step: str) -> Step:
    assert ran.jobs[job] == "success", ran.told
    return ran.step(job, step)


def test_a_label_launches_once_the_schedule_looks_and_a_comment_stops(here: Workplace) -> None:
    first = launched(here)
    run_id = first.outputs["run"]
    assert first.outputs["created"] == "true"
    (deployment,) = here.github.deployments(REPO)
    assert first.outputs["deployment"] == str(deployment["id"])
    assert any(run_id in comment["body"] for comment in here.github.comments(REPO, 1))

    again = launched(here)
    assert (again.outputs["run"], again.outputs["created"]) == (run_id, "false")
    assert len(here.github.deployments(REPO)) == 1

    watched = did(here.run("watch.yml", "schedule", {}), "watch", "watch")
    assert (watched.outputs["looked-at"], watched.outputs["stale"]) == ("1", "false")

    refused = did(commanded(here, "bob", "/prime-train stop"), "stop", "stop")
    assert refused.outputs["did"] == "nothing"
    stopped = did(commanded(here, "ann", "/prime-train stop"), "stop", "stop")
    assert (stopped.outputs["run"], stopped.outputs["did"]) == (run_id, "stop")
