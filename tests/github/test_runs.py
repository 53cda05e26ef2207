"""Runs are launched, reported and stopped by the workflows, as act runs them, with a control plane and a
GitHub in processes of their own.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import pytest

from prime_train.environment import CREDENTIALS
from prime_train.providers.ssh_client.keys import derived_public_key
from prime_train.runs.run import Change, RunState
from prime_train.stores.remote import RemoteStore
from tests import builders as b
from tests.cli.shell import Shell
from tests.fakes.http import ALWAYS
from tests.fakes.kubernetes import TOKEN, FakeKubernetes
from tests.fakes.prime import needs_sshd
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.ssh_wire import Cuts
from tests.fakes.wandb import KEY, FakeRun, FakeWandb, unwell
from tests.github.act import Ran, Step, needs_act
from tests.github.workplace import REPO, Workplace

pytestmark = needs_act

SMALL = """\
name: small
trainer:
  command: python train.py
  steps: 20
  code: {folder: "."}
checkpoints: {folder: out, sentinel: COMPLETE, every_steps: 5}
hardware: {open_files_min: 256, disk_gib: 1, usd_per_hour_max: 2}
budget: {usd: 5, hours: 2}
"""

SETTINGS = """\
usd_per_hour: 0.5
kubeconfig:
  current-context: here
  contexts: [{{name: here, context: {{cluster: it, user: me, namespace: training}}}}]
  clusters: [{{name: it, cluster: {{server: "{url}"}}}}]
  users:
  - name: me
    user:
      token: {token}
"""
MACHINES = """\
machines:
  - name: box
    address: {user}@127.0.0.1:{port}
    disk_gib: 100
    usd_per_hour: 1.5
    host_keys: ["{host_key}"]
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return the variables that lead to a control plane without a watcher."""
    folder = tmp_path / "plane"
    folder.mkdir()
    shell = Shell(folder)
    named = {"PRIME_TRAIN_PROVIDER": "local", "PRIME_TRAIN_POLICY": "{providers: [local, ssh, kubernetes]}"}
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ", **named):
        yield dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())


@pytest.fixture
def here(workplace: Workplace, plane: dict[str, str]) -> Workplace:
    """Return a workplace with a pull request; ann may push, bob may not."""
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
    assert ran.jobs[job] == "success", ran.reported
    return ran.step(job, step)


def test_no_job_that_holds_keys_starts_for_an_outsiders_comment(here: Workplace) -> None:
    here.github.add_user("eve")
    assert commanded(here, "eve", "/prime-train stop").jobs == {}


@pytest.mark.exhaustive
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


def shown(here: Workplace, provider: str) -> tuple[str, str]:
    """Return what a dry run at this provider shows, and everything that others could read of its job."""
    here.push(
        {f"configs/{provider}.yaml": SMALL.replace("hardware: {", f"hardware: {{provider: {provider}, ")}
    )
    inputs = {"config": f"configs/{provider}.yaml", "dry-run": "true", "again": "false"}
    ran = here.run("launch.yml", "workflow_dispatch", {"inputs": inputs})
    step = did(ran, f"launch configs/{provider}.yaml", "launch")
    return step.text + step.summary, ran.reported


@pytest.mark.exhaustive
def test_a_job_looks_into_a_cluster_and_shows_no_credential(here: Workplace) -> None:
    with FakeKubernetes(running=True) as cluster:
        here.secrets[CREDENTIALS] = json.dumps(
            {"PRIME_TRAIN_KUBERNETES": SETTINGS.format(url=cluster.url, token=TOKEN)}
        )
        found, reported = shown(here, "kubernetes")
        assert "kubernetes" in found
        assert TOKEN not in reported
        assert cluster.violations == []


@needs_sshd
@pytest.mark.exhaustive
def test_a_job_logs_in_to_machines_of_ones_own_with_the_control_planes_key(
    here: Workplace, tmp_path: Path
) -> None:
    key = derived_public_key(bytes.fromhex(here.secrets["PRIME_TRAIN_MASTER_KEY"]))
    machine = Machine(tmp_path / "machine", f"box-{token_hex(8)}", key, Cuts())
    try:
        host_key = machine.host_key().strip()
        machines = MACHINES.format(user=machine.user, port=machine.port, host_key=host_key)
        here.secrets[CREDENTIALS] = json.dumps({"PRIME_TRAIN_SSH_HOSTS": machines})
        found, reported = shown(here, "ssh")
        assert "box" in found
        assert f"address: {machine.user}@127.0.0.1:{machine.port}" not in reported
    finally:
        machine.destroy()


HOUR_S = 3600


def sending_heartbeats(here: Workplace) -> tuple[RemoteStore, str]:
    """Store a run that trains and sends heartbeats; no slow step of a test makes it silent."""
    store = RemoteStore(
        here.variables["PRIME_TRAIN_URL"], bytes.fromhex(here.secrets["PRIME_TRAIN_MASTER_KEY"])
    )
    now_s = int(time.time())
    attempt = b.new_attempt(
        launched_s=now_s - 60, agent_put_s=now_s - 55, first_heartbeat_s=now_s - 50, first_step_s=now_s - 40
    )
    spec = b.spec(
        wandb={"project": "sums"}, health={"overdue_s": HOUR_S, "silence_s": 2 * HOUR_S, "stall_s": HOUR_S}
    )
    run = b.run(
        RunState.TRAINING,
        run_id="sums-heartbeats",
        spec=spec,
        created_s=now_s - 70,
        attempts=(attempt,),
        next_check_s=now_s,
    )
    assert store.create(run)
    lease = b.lease(run, heartbeat=None, heartbeat_s=None, seq=0)
    assert store.save(Change(replace(run, version=run.version + 1), lease=lease, lease_version=0))
    store.heartbeat(b.heartbeat(1, run=run.run_id, step=10), now_s)
    return store, run.run_id


def test_the_schedule_tells_of_a_run_that_only_wandb_shows_as_silent_and_leaves_those_that_send_heartbeats_alone(
    here: Workplace,
) -> None:
    now_s = time.time()
    store, ours = sending_heartbeats(here)
    before = store.load(ours)
    silent = FakeRun("sums", "lost-one", heartbeat_s=now_s - 3 * HOUR_S, display_name="a run % of\nsomebody")
    with FakeWandb(silent, FakeRun("sums", "lively", heartbeat_s=now_s + 2 * HOUR_S)) as wandb:
        wandb.add(FakeRun("sums", ours, heartbeat_s=now_s - 3 * HOUR_S))
        here.variables |= {"PRIME_TRAIN_WANDB": "acme/sums", "WANDB_BASE_URL": wandb.url}
        here.secrets["WANDB_API_KEY"] = KEY
        ran = here.run("watch.yml", "schedule", {})
    watched = did(ran, "watch", "watch")
    assert watched.outputs["silent"] == "1", ran.reported
    verb = ran.step("watch", "watch/verb")
    (reported,) = [note for note in verb.annotations if "W&B" in note.message]
    assert reported.level == "warning"
    assert "acme/sums/lost-one" in reported.message
    assert "nothing was changed" in reported.message
    assert [note.level for note in verb.annotations] == ["warning"] * len(verb.annotations)
    assert "lost-one" in verb.summary
    for left_alone in ("lively", ours):
        assert left_alone not in reported.message + verb.summary.partition("fell silent, by")[2]
    after = store.load(ours)
    assert before is not None
    assert after is not None
    assert (after.run.state, after.run.attempt, after.run.desired) == (
        RunState.TRAINING,
        1,
        before.run.desired,
    )
    assert KEY not in ran.reported


def test_the_schedule_sweeps_all_the_same_where_wandb_does_not_answer(here: Workplace) -> None:
    with FakeWandb() as wandb:
        wandb.fail(unwell(503), times=ALWAYS)
        here.variables |= {"PRIME_TRAIN_WANDB": "acme/sums", "WANDB_BASE_URL": wandb.url}
        here.secrets["WANDB_API_KEY"] = KEY
        ran = here.run("watch.yml", "schedule", {})
    watched = did(ran, "watch", "watch")
    assert watched.outputs["looked-at"] == "0"
    assert watched.outputs.get("silent", "") == ""
    assert any(
        "W&B cannot be queried" in note.message for note in ran.step("watch", "watch/verb").annotations
    ), ran.reported
