"""A pull request that makes the training worse: its comment compares the numbers with those of the base
branch, and its check fails.

Both runs are trained by a control plane in a process of its own, and the numbers come from its bucket; act
runs the workflows.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.github.api import GitHub
from prime_train.runs.run import Run, RunState
from prime_train.stores.remote import RemoteStore
from tests.cli.shell import Shell
from tests.github.act import Ran, needs_act
from tests.github.workplace import REPO, Workplace
from tests.waiting import await_true

pytestmark = [pytest.mark.slow, needs_act]

CONFIG = "configs/small.yaml"
REQUIRED = "loss <= base * 1.02"


TRAIN = """\
import json
import pathlib
import sys

weight, rate = 1.0, float(sys.argv[sys.argv.index("--lr") + 1])
with open("progress.jsonl", "w") as progress:
    for step in range(1, 21):
        weight -= rate * 2 * weight
        progress.write(json.dumps({"step": step, "loss": weight**2, "lr": rate}) + "\\n")
folder = pathlib.Path("out/checkpoints/step_20")
folder.mkdir(parents=True)
(folder / "weight").write_text(str(weight))
(folder / "COMPLETE").touch()
"""
CONFIG_TEXT = """\
name: small
trainer:
  command: python train.py --seed 1 --lr LEARNING_RATE
  resume: ""
  steps: 20
  progress: {file: progress.jsonl}
checkpoints: {folder: out/checkpoints, sentinel: COMPLETE}
hardware: {open_files_min: 256, disk_gib: 1}
health: {heartbeat_s: 1, overdue_s: 10, silence_s: 20, settle_s: 5}
budget: {usd: 5, hours: 2}
require:
  - lr > 0
  - loss <= base * 1.02
"""


@pytest.fixture
def here(workplace: Workplace, tmp_path: Path) -> Iterator[Workplace]:
    """Return a repository whose control plane trains on this machine."""
    folder = tmp_path / "plane"
    folder.mkdir()
    shell = Shell(folder)
    with shell.started("serve", "--port", "0", until="serving ", PRIME_TRAIN_PROVIDER="local"):
        plane = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        workplace.variables |= {"PRIME_TRAIN_URL": plane["PRIME_TRAIN_STORE"], "PRIME_TRAIN_ON_LABEL": "true"}
        workplace.secrets["PRIME_TRAIN_MASTER_KEY"] = plane["PRIME_TRAIN_MASTER_KEY"]
        workplace.github.add_user("ann", repo=REPO, role="write")
        yield workplace


def succeeded(here: Workplace, ran: Ran) -> Run:
    """Return the run that the workflow launched, when it has succeeded."""
    step = ran.step(f"launch {CONFIG}", "launch")
    store = RemoteStore(
        here.variables["PRIME_TRAIN_URL"], bytes.fromhex(here.secrets["PRIME_TRAIN_MASTER_KEY"])
    )
    await_true(
        "the run ends", lambda: (record := store.load(step.outputs["run"])) is not None and record.run.is_over
    )
    record = store.load(step.outputs["run"])
    assert record is not None
    assert record.run.state is RunState.SUCCEEDED, record.run.why
    return record.run


def test_a_learning_rate_that_makes_the_loss_worse_fails_the_check(here: Workplace) -> None:
    here.push({CONFIG: CONFIG_TEXT.replace("LEARNING_RATE", "0.1"), "train.py": TRAIN})
    ann = GitHub(REPO, here.github.person_token("ann"), url=here.github.url)
    ann.ask(
        "POST", "actions/workflows/launch.yml/dispatches", body={"ref": "main", "inputs": {"config": CONFIG}}
    )
    base = succeeded(here, here.run("launch.yml", "workflow_dispatch"))

    here.branch("change")
    changed = CONFIG_TEXT.replace("LEARNING_RATE", "0.001")
    here.push({CONFIG: changed})
    here.github.add_pull(REPO, "change", author="ann")
    opened = [each["payload"] for each in here.github.events() if each["name"] == "pull_request"][-1]

    here.github.label(REPO, 1, "train", by="ann")
    worse = succeeded(here, here.run("launch.yml", "pull_request"))
    assert here.run("watch.yml", "schedule", here.github.schedule(REPO, "7-59/10 * * * *")).jobs == {
        "watch": "success"
    }
    check = here.github.statuses(REPO)[-1]
    assert (check["state"], check["context"]) == ("failure", f"prime-train/{CONFIG}")
    assert check["description"].startswith(f"not met: {REQUIRED} (it is ")
    comment = next(each["body"] for each in here.github.comments(REPO, 1) if worse.run_id in each["body"])
    assert base.origin is not None
    assert f"Base: `{base.run_id}`, step 20 at commit `{base.commit[:12]}`, ended " in comment
    assert f"| `{REQUIRED}` (" in comment
    assert "❌ not met |" in comment

    later = here.run("validate.yml", "pull_request", opened)
    assert later.jobs == {"validate": "failure"}, later.reported
    (note,) = [one for one in later.step("validate", "validate/verb").annotations if "PT024" in one.title]
    assert (note.level, note.file, note.line) == (
        "error",
        CONFIG,
        1 + changed.splitlines().index(f"  - {REQUIRED}"),
    )
    assert base.run_id != worse.run_id
