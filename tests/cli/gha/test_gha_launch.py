"""A launch from a job: of exactly that commit, once however often it is requested, and only for users who may
push.
"""

from dataclasses import replace

import pytest

from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Change, Run, RunState
from prime_train.stores.remote import RemoteStore
from tests.cli.gha.job import GOOD, Did, Job
from tests.github.scratch import commit

CONFIG = {"PRIME_TRAIN_INPUT_CONFIG": "configs/small.yaml"}


def dispatched(job: Job, plane: dict[str, str], **env: str) -> Did:
    return job.run("launch", "workflow_dispatch", {"inputs": {}}, **(plane | CONFIG | env))


def control_plane(plane: dict[str, str]) -> RemoteStore:
    return RemoteStore(plane["PRIME_TRAIN_STORE"], bytes.fromhex(plane["PRIME_TRAIN_MASTER_KEY"]))


def runs(job: Job, plane: dict[str, str]) -> list[Run]:
    """Return the runs of this repository."""
    return [
        run
        for run in control_plane(plane).list_runs()
        if run.origin is not None and run.origin.repository == job.repo
    ]


def test_a_dispatch_launches_and_records_a_deployment(job: Job, plane: dict[str, str]) -> None:
    did = dispatched(job, plane)
    assert did.code == 0, did.log
    (run,) = runs(job, plane)
    assert did.outputs | {"url": ""} == {
        "run": run.run_id,
        "state": "queued",
        "created": "true",
        "url": "",
        "deployment": did.outputs["deployment"],
    }  # fmt: skip
    (deployment,) = job.fake.deployments(job.repo)
    assert deployment["environment"] == f"prime-train/{run.run_id}"
    assert [status["state"] for status in deployment["statuses"]] == ["queued"]
    assert run.run_id in did.summary


def test_the_same_dispatch_twice_is_one_run(job: Job, plane: dict[str, str]) -> None:
    first, again, button = (
        dispatched(job, plane),
        dispatched(job, plane),
        dispatched(job, plane, GITHUB_RUN_ID="1002"),
    )
    assert [did.outputs["created"] for did in (first, again, button)] == ["true", "false", "false"]
    assert len(runs(job, plane)) == len(job.fake.deployments(job.repo)) == 1
    assert (
        dispatched(job, plane, GITHUB_RUN_ID="1003", PRIME_TRAIN_INPUT_AGAIN="true").outputs["created"]
        == "true"
    )
    assert len(runs(job, plane)) == 2


def test_a_replayed_event_is_one_run_and_another_id_another(job: Job, plane: dict[str, str]) -> None:
    payload = {"action": "prime-train-launch", "client_payload": {"config": "configs/small.yaml", "id": "a"}}
    again = {"PRIME_TRAIN_INPUT_AGAIN": "true"}
    for number in ("1", "2"):
        assert (
            job.run(
                "launch", "repository_dispatch", payload, **(plane | CONFIG | again), GITHUB_RUN_ID=number
            ).code
            == 0
        )
    assert len(runs(job, plane)) == 1


def test_a_dry_run_launches_nothing(job: Job, plane: dict[str, str]) -> None:
    did = dispatched(job, plane, PRIME_TRAIN_INPUT_DRY_RUN="true")
    assert did.code == 0, did.log
    assert "nothing was launched" in did.summary
    assert (runs(job, plane), job.fake.deployments(job.repo)) == ([], [])


def test_a_config_with_errors_is_not_launched(job: Job, plane: dict[str, str]) -> None:
    job.commit({"configs/small.yaml": GOOD + "budgets: 3\n"})
    did = dispatched(job, plane)
    assert did.code == 1
    assert [level for level, _ in did.annotations if level == "error"]
    assert (runs(job, plane), job.fake.deployments(job.repo)) == ([], [])


def test_what_is_not_pushed_is_not_launched(job: Job, plane: dict[str, str]) -> None:
    (job.folder / "train.py").write_text("print(2)\n")
    assert "has uncommitted changes" in dispatched(job, plane).log
    job.commit({})
    did = dispatched(job, plane, GITHUB_SHA="0" * 40)
    assert did.code == 2
    assert "the event is about 000000000000" in did.log
    assert runs(job, plane) == []


def test_a_commit_that_github_does_not_have_is_not_launched(job: Job, plane: dict[str, str]) -> None:
    commit(job.folder, {"train.py": "print(3)\n"}, "not pushed")
    did = dispatched(job, plane)
    assert did.code == 2
    assert "is not on GitHub" in did.log
    assert runs(job, plane) == []


# ------------------------------------------------------------------------------------------------------------
# pull requests


def labelled(job: Job, plane: dict[str, str], name: str = "train", by: str = "ann") -> Did:
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 6")}, "change")
    number = job.fake.add_pull(job.repo, "change", author="ann")
    job.fake.label(job.repo, number, name, by=by)
    return job.run("launch", "pull_request", job.event("pull_request"), **(plane | CONFIG))


def test_a_label_launches_and_the_pull_request_is_notified(job: Job, plane: dict[str, str]) -> None:
    did = labelled(job, plane)
    assert did.code == 0, did.log
    (comment,) = job.fake.comments(job.repo, 1)
    (run,) = runs(job, plane)
    assert f"`{run.run_id}` waits for a machine" in comment["body"]
    assert did.outputs["url"] == comment["html_url"]


@pytest.mark.parametrize(
    ("name", "by", "why"),
    [
        ("train", "bob", "bob may not launch"),
        ("train", "robot[bot]", "may not launch"),
        ("bug", "ann", "'bug' does not launch a run"),
    ],
)
def test_a_label_of_who_may_not_push_launches_nothing(
    job: Job, plane: dict[str, str], name: str, by: str, why: str
) -> None:
    if by.endswith("[bot]"):
        job.fake.add_user(by, repo=job.repo, role="write", kind="Bot")
    did = labelled(job, plane, name, by)
    assert did.code == 4
    assert why in did.log
    assert (runs(job, plane), job.fake.deployments(job.repo)) == ([], [])


def test_the_label_probe_launches_a_probe_within_its_own_budget(job: Job, plane: dict[str, str]) -> None:
    did = labelled(job, plane | {"PRIME_TRAIN_INPUT_PROBE_USD": "0.5"}, "probe")
    assert did.code == 0, did.log
    (run,) = runs(job, plane)
    assert run.probe is not None
    assert (run.probe.config, run.spec.name, run.spec.budget.usd) == ("small", "small-probe", 0.5)
    # The label train is another request about the same commit.
    job.fake.label(job.repo, 1, "train", by="ann")
    assert (
        job.run("launch", "pull_request", job.event("pull_request"), **(plane | CONFIG)).outputs["created"]
        == "true"
    )
    assert sorted(run.spec.name for run in runs(job, plane)) == ["small", "small-probe"]


def proposed(job: Job, plane: dict[str, str], **more: str) -> Did:
    return job.run(
        "launch",
        "pull_request",
        job.event("pull_request") | {"action": "synchronize"},
        **(plane | CONFIG | more),
    )


def test_proposed_commits_launch_probes_only_where_the_job_says_so_and_once(
    job: Job, plane: dict[str, str]
) -> None:
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 6")}, "change")
    job.fake.add_pull(job.repo, "change", author="ann")
    refused = proposed(job, plane)
    assert refused.code == 4
    assert "does not launch a run" in refused.log
    for created in ("true", "false"):
        assert proposed(job, plane, PRIME_TRAIN_INPUT_PROBE="true").outputs["created"] == created
    assert [run.spec.name for run in runs(job, plane)] == ["small-probe"]


def test_a_config_of_too_few_steps_is_no_failure_of_a_pull_request_that_nobody_asked_to_measure(
    job: Job, plane: dict[str, str]
) -> None:
    job.commit({"configs/small.yaml": GOOD.replace("steps: 20", "steps: 3")}, "change")
    job.fake.add_pull(job.repo, "change", author="ann")
    did = proposed(job, plane, PRIME_TRAIN_INPUT_PROBE="true")
    assert did.code == 0, did.log
    assert "is 3: too few steps to measure" in did.summary
    asked = dispatched(job, plane, PRIME_TRAIN_INPUT_PROBE="true")
    assert (asked.code, runs(job, plane)) == (2, [])


def test_what_was_measured_before_is_not_measured_again_by_itself(job: Job, plane: dict[str, str]) -> None:
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 6")}, "change")
    job.fake.add_pull(job.repo, "change", author="ann")
    assert proposed(job, plane, PRIME_TRAIN_INPUT_PROBE="true").code == 0
    (run,) = runs(job, plane)
    offer = Offer("local", "local-spot", 0.6, spot=True)
    measured = Attempt(
        1, offer, run.created_s, pod_id="p", timed_steps=20, timed_s=30.0, fenced_s=run.created_s + 90
    )
    assert control_plane(plane).save(
        Change(
            replace(run, state=RunState.SUCCEEDED, attempt=1, attempts=(measured,), version=run.version + 1)
        )
    )
    job.commit({"notes.md": "another commit"}, "change")
    did = proposed(job, plane, PRIME_TRAIN_INPUT_PROBE="true")
    assert did.code == 0, did.log
    assert f"1.5 s a step (probe {run.run_id}, 20 steps)" in did.summary
    assert len(runs(job, plane)) == 1


def test_a_fork_launches_nothing(job: Job, plane: dict[str, str]) -> None:
    number = job.fake.add_pull(
        job.repo, "theirs", author="bob", files={"configs/small.yaml": GOOD + "\n"}, fork="bob/models"
    )
    job.fake.label(job.repo, number, "train", by="ann")
    payload = job.event("pull_request")
    did = job.run(
        "launch",
        "pull_request",
        payload,
        **(plane | CONFIG),
        GITHUB_SHA=payload["pull_request"]["head"]["sha"],
    )
    assert did.code in (2, 4)
    assert (runs(job, plane), job.fake.deployments(job.repo)) == ([], [])


def test_an_event_without_an_id_can_ask_for_another_run(job: Job, plane: dict[str, str]) -> None:
    payload = {"action": "prime-train-launch", "client_payload": {"config": "configs/small.yaml"}}
    again = {"PRIME_TRAIN_INPUT_AGAIN": "true"}
    for number in ("1", "2"):
        assert (
            job.run(
                "launch", "repository_dispatch", payload, **(plane | CONFIG | again), GITHUB_RUN_ID=number
            ).code
            == 0
        )
    assert len(runs(job, plane)) == 2


def test_a_run_knows_its_branch_and_the_one_that_its_pull_request_changes(
    job: Job, plane: dict[str, str]
) -> None:
    job.fake.add_user("ann", repo=job.repo, role="write")
    job.run("launch", "workflow_dispatch", {"inputs": {}, "ref": "refs/heads/main"}, **(plane | CONFIG))
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 6")}, "change")
    number = job.fake.add_pull(job.repo, "change", author="ann")
    job.run(
        "launch",
        "workflow_dispatch",
        {"inputs": {}, "ref": "refs/heads/change"},
        GITHUB_RUN_ID="1002",
        **(plane | CONFIG),
    )
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 7")}, "change")
    job.fake.label(job.repo, number, "train", by="ann")
    labelled = job.event("pull_request")
    assert job.run("launch", "pull_request", labelled, **(plane | CONFIG)).code == 0
    found = [
        (run.origin.branch, run.origin.base, run.origin.pull)
        for run in runs(job, plane)
        if run.origin is not None
    ]
    assert sorted(found, key=str) == [
        ("change", "main", number),
        ("change", "main", number),
        ("main", "", None),
    ]
