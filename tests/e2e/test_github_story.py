"""The complete story of a run on GitHub, without any patched part: a bad config, a good one, a launch, a lost
machine, a stop.

Only other parties are replaced: GitHub, Prime Intellect and prime-rl are fakes, and act replaces GitHub's
runners.
"""

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from prime_train.runs.run import DesiredState, RunState
from prime_train.spec.causes import Cause
from tests.e2e.github_repository import Place, Planes, on_lambdas, place, served
from tests.fakes.nvml import Driver
from tests.fakes.prime import needs_sshd
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.upstream import upstream_in
from tests.github.act import Ran, Step, needs_act
from tests.github.workplace import REPO
from tests.waiting import await_true

pytestmark = [
    pytest.mark.slow,
    needs_act,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

CONFIG = "configs/sums.yaml"
RL = "configs/sums/rl.toml"
STEPS = 2000
"""Number of steps, more than are made before the run is stopped."""
GOOD_RL = """\
[model]
name = "Qwen/Qwen3-0.6B"

[inference]

[deployment]
num_infer_gpus = 1
num_train_gpus = 1  # prime-train: ignore[PR321] these machines have none

[orchestrator]
batch_size = 128
group_size = 8
seq_len = 2048
renderer.name = "default"

[[orchestrator.train.source]]
name = "sums"
env.taskset.id = "sums"
"""
BAD_RL = GOOD_RL.replace("group_size = 8", "group_sise = 8")
HEALTH = {
    "heartbeat_s": 1,
    "overdue_s": 15,
    "silence_s": 40,
    "first_heartbeat_s": 120,
    "first_step_s": 120,
    "stall_s": 60,
    "settle_s": 5,
    "drain_s": 180,
}


def config(folder: Path) -> str:
    """Return the config of a run on two GPUs, whose prime-rl is the fake in `folder`."""
    upstream, commits = upstream_in(folder / "upstream")
    uv = uv_in(folder / "bin")
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    prime_rl = {"config": "rl.toml", "ref": commits[-1], "run_name": "sums"}
    return yaml.safe_dump(
        {
            "name": "sums",
            "trainer": {
                "kind": "prime_rl",
                "steps": STEPS,
                "stop_s": 5,
                "code": {"folder": "configs/sums"},
                "prime_rl": prime_rl,
            },
            "hardware": {"gpus": ["A100_80GB"], "count": 2, "disk_gib": 17, "open_files_min": 1024},
            "checkpoints": {"every_steps": 5, "keep": 2, "settled_s": 1},
            "budget": {"usd": 100, "hours": 120},
            "health": HEALTH,
            "environment": {**upstream, **uv, "PATH": path, "FAKE_RL_STEP_S": "0.2"},
        },
        sort_keys=False,
    )


def line_of(text: str, start: str) -> int:
    return 1 + next(number for number, line in enumerate(text.splitlines()) if line.strip().startswith(start))


def did(ran: Ran, jobs: dict[str, str], job: str, step: str) -> Step:
    """Return the step, after checking that just these jobs ran, with these results."""
    assert ran.jobs == jobs, ran.reported
    return ran.step(job, step)


def states(here: Place) -> list[str]:
    (deployment,) = here.github.deployments(REPO)
    return [status["state"] for status in deployment["statuses"]]


@pytest.mark.exhaustive
@pytest.mark.parametrize("planes", [on_lambdas, served])
def test_the_complete_story(planes: Planes, tmp_path: Path, driver: Driver) -> None:
    with planes(tmp_path / "plane", driver) as plane, place(tmp_path, plane) as here:
        for name, role in (("ann", "write"), ("bob", "read")):
            here.github.add_user(name, repo=REPO, role=role)
        good = config(tmp_path)
        a_bad_config_is_told_of_at_its_lines(here, good.replace("disk_gib: 17", "disk_gib: 4"))
        mended_it_is_priced_in_the_same_comment(here, good)
        run_id = a_dispatch_launches_one_run_however_often_it_is_made(here)
        the_schedule_puts_the_agent_on(here)
        a_laptop_gets_in_where_a_job_has_put_the_agent(here)
        a_machine_that_is_taken_away_is_replaced(here)
        nobody_stops_it_who_may_not_write(here)
        who_may_write_stops_it(here)
        assert here.record.run.run_id == run_id
        nothing_is_left(here)
        no_secret_is_told(here)


def a_bad_config_is_told_of_at_its_lines(here: Place, bad: str) -> None:
    here.branch("sums")
    here.push({CONFIG: bad, RL: BAD_RL})
    here.github.add_pull(REPO, "sums", author="ann")
    ran = here.run("validate.yml", "pull_request")
    step = did(ran, {"validate": "failure"}, "validate", "validate")
    assert step.outputs["valid"] == "false"
    reported = {
        (note.level, note.file, note.line) for note in ran.step("validate", "validate/verb").annotations
    }
    assert {
        ("error", CONFIG, line_of(bad, "disk_gib")),
        ("warning", RL, line_of(BAD_RL, "group_sise")),
    } <= reported, ran.reported
    comment = here.comment("validate")
    assert (
        comment.index(f"| error | `{CONFIG}:{line_of(bad, 'disk_gib')}`")
        < comment.index("| warning |")
        < comment.index("| note |")
    )


def mended_it_is_priced_in_the_same_comment(here: Place, good: str) -> None:
    before = [each["id"] for each in here.github.comments(REPO, 1)]
    here.push({CONFIG: good, RL: GOOD_RL})
    step = did(here.run("validate.yml", "pull_request"), {"validate": "success"}, "validate", "validate")
    assert json.loads(step.outputs["configs"]) == [CONFIG]
    assert [each["id"] for each in here.github.comments(REPO, 1)] == before
    reported = here.comment("validate")
    for words in (
        "GPU memory",
        "2x A100_80GB PCIe spot",
        "full run",
        "Budget: ",
        "base branch does not have this config",
    ):
        assert words in reported, reported
    assert "group_sise" not in reported


def a_dispatch_launches_one_run_however_often_it_is_made(here: Place) -> str:
    launch = f"launch {CONFIG}"
    first, again = (
        did(
            here.dispatch("ann", "launch.yml", {"config": CONFIG}, ref="sums"),
            {"validate": "success", launch: "success"},
            launch,
            "launch",
        )
        for _ in range(2)
    )
    assert (first.outputs["created"], again.outputs["created"]) == ("true", "false")
    assert first.outputs["run"] == again.outputs["run"] == here.record.run.run_id
    # On AWS the watcher's function rents it; the webhook asks for that function and does not wait for its
    # end.
    await_true("a machine is rented", lambda: here.prime.alive)
    assert len(here.prime.requests_to("POST", "/pods/")) == len(here.prime.alive) == 1
    (deployment,) = here.github.deployments(REPO)
    assert deployment["environment"] == f"prime-train/{first.outputs['run']}"
    assert str(deployment["id"]) == first.outputs["deployment"]
    assert here.record.run.origin is not None
    assert here.record.run.origin.actor == "ann"
    assert first.outputs["run"] in here.comment("run")
    return first.outputs["run"]


def the_schedule_puts_the_agent_on(here: Place) -> None:
    ran = here.tick()
    did(ran, {"watch": "success"}, "watch", "watch")
    assert here.record.run.state in (RunState.STARTING, RunState.TRAINING), ran.reported
    assert states(here)[-1] == "in_progress"


def a_laptop_gets_in_where_a_job_has_put_the_agent(here: Place) -> None:
    here.await_step(12)
    run_id = here.record.run.run_id
    assert here.laptop("ssh", run_id, "pwd; echo inside").splitlines()[-1] == "inside"
    assert "the agent is installed" in here.laptop("logs", run_id)


def a_machine_that_is_taken_away_is_replaced(here: Place) -> None:
    lost = here.await_step(12)
    here.prime.preempt(lost.pod_id)
    durable = here.newest_step
    assert durable >= 5
    here.await_quiet()
    await_true("another machine is asked for", lambda: is_replaced(here))

    run = here.record.run
    first, second = run.attempts
    assert (first.cause, second.resumed_step) == (Cause.PREEMPTED, durable)
    assert first.pod_id != second.pod_id
    reported = here.comment("run")
    for words in (
        "1: machine preempted",
        "Spent",
        "attempt 2",
        "the provider reports that the machine is gone",
    ):
        assert words in reported, reported
    (found,) = here.github.deployments(REPO)
    assert "1 restart: machine preempted" in found["statuses"][-1]["description"]
    new = here.await_step(durable + 6)
    assert new.pod_id != lost.pod_id


def is_replaced(here: Place) -> bool:
    """Let the schedule's job run once. On a busy machine the first one may come before what it has to see."""
    did(here.tick(), {"watch": "success"}, "watch", "watch")
    return len(here.record.run.attempts) == 2


def nobody_stops_it_who_may_not_write(here: Place) -> None:
    reported = here.comment("run")
    # No job starts for a stranger: it would hold the keys. Whether a collaborator may write, GitHub is asked.
    assert here.say("mallory", "/prime-train stop").jobs == {}
    step = did(here.say("bob", "/prime-train stop"), {"stop": "success"}, "stop", "stop")
    assert step.outputs["did"] == "nothing"
    assert here.record.run.desired is DesiredState.RUN
    assert here.comment("run") == reported


def who_may_write_stops_it(here: Place) -> None:
    step = did(here.say("ann", "/prime-train stop"), {"stop": "success"}, "stop", "stop")
    run = here.record.run
    assert (step.outputs["did"], step.outputs["state"]) == ("stop", "stopped")
    assert (run.state, run.cause) == (RunState.STOPPED, Cause.STOPPED_GRACEFULLY)
    assert run.durable_step == here.newest_step > run.attempts[1].resumed_step
    assert "was stopped at the user's request" in here.comment("run")
    assert states(here)[-1] == "inactive"


def nothing_is_left(here: Place) -> None:
    """Check that of the two machines none is paid for, that the ledger has both, and that the next sweep
    finds nothing to do.
    """
    step = did(here.tick(), {"watch": "success"}, "watch", "watch")
    assert (step.outputs["looked-at"], step.outputs["stale"]) == ("0", "false")
    assert len(here.prime.requests_to("POST", "/pods/")) == 2
    assert here.prime.alive == []
    assert all(attempt.ended_s is not None for attempt in here.record.run.attempts)


def no_secret_is_told(here: Place) -> None:
    reported = here.everything_told()
    assert [name for name, secret in here.all_secrets().items() if secret in reported] == []
