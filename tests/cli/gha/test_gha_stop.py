"""Stopping, resuming and querying runs by comment: accepted from users who may push, and ignored from
others.
"""

from dataclasses import replace

import pytest

from prime_train.runs.run import Change, Probe, RunState
from prime_train.stores.remote import RemoteStore
from tests.cli.gha.job import GOOD, Did, Job


@pytest.fixture
def run_id(job: Job, plane: dict[str, str]) -> str:
    """Launch a run from pull request 1, and return its id."""
    job.commit({"configs/small.yaml": GOOD.replace("usd: 5", "usd: 6")}, "change")
    number = job.fake.add_pull(job.repo, "change", author="ann")
    job.fake.label(job.repo, number, "train", by="ann")
    did = job.run(
        "launch",
        "pull_request",
        job.event("pull_request"),
        **plane,
        PRIME_TRAIN_INPUT_CONFIG="configs/small.yaml",
    )
    return did.outputs["run"]


def output(job: Job, plane: dict[str, str], author: str, body: str) -> Did:
    job.fake.comment(job.repo, 1, author=author, body=body)
    return job.run("stop", "issue_comment", job.event("issue_comment"), **plane)


def store(plane: dict[str, str]) -> RemoteStore:
    return RemoteStore(plane["PRIME_TRAIN_STORE"], bytes.fromhex(plane["PRIME_TRAIN_MASTER_KEY"]))


def desired(plane: dict[str, str], run_id: str) -> str:
    record = store(plane).load(run_id)
    assert record is not None
    return record.run.desired.value


def test_who_may_push_stops_the_run_of_the_pull_request(job: Job, plane: dict[str, str], run_id: str) -> None:
    did = output(job, plane, "ann", "/prime-train stop")
    assert did.code == 0, did.log
    assert (did.outputs["run"], did.outputs["did"], desired(plane, run_id)) == (run_id, "stop", "stop")


def test_who_may_not_push_is_not_heard(job: Job, plane: dict[str, str], run_id: str) -> None:
    did = output(job, plane, "bob", "/prime-train stop")
    assert (did.code, did.outputs["did"], desired(plane, run_id)) == (0, "nothing", "run")
    assert not [call for call in job.fake.requests if call.path.endswith("/reactions")]


@pytest.mark.parametrize(
    "body",
    ["please stop", "/prime-trainstop", "/prime-train", "/prime-train stop a b c", "/prime-train $(reboot)"],
)
def test_what_is_no_command_does_nothing(job: Job, plane: dict[str, str], run_id: str, body: str) -> None:
    did = output(job, plane, "ann", body)
    assert (did.code, did.outputs["did"], desired(plane, run_id)) == (0, "nothing", "run")


def test_a_run_of_another_repository_is_out_of_reach(job: Job, plane: dict[str, str], run_id: str) -> None:
    record = store(plane).load(run_id)
    assert record is not None
    assert record.run.origin is not None
    other = f"other-{run_id}"
    store(plane).create(
        replace(
            record.run, run_id=other, version=1, origin=replace(record.run.origin, repository="acme/other")
        )
    )
    did = output(job, plane, "ann", f"/prime-train stop {other}")
    assert did.code == 4
    assert desired(plane, other) == "run"


def test_status_shows_the_run_anew(job: Job, plane: dict[str, str], run_id: str) -> None:
    did = output(job, plane, "ann", "/prime-train status")
    assert (did.outputs["did"], did.outputs["state"]) == ("status", "queued")
    assert run_id in did.summary


def test_a_probe_that_has_succeeded_is_not_what_a_command_to_resume_means(
    job: Job, plane: dict[str, str], run_id: str
) -> None:
    record = store(plane).load(run_id)
    assert record is not None
    probe = replace(
        record.run,
        run_id=f"probe-{run_id}",
        version=1,
        state=RunState.SUCCEEDED,
        probe=Probe("small", 10, 60.0),
    )
    assert store(plane).create(probe)
    assert store(plane).save(
        Change(replace(record.run, state=RunState.FAILED, version=record.run.version + 1))
    )
    did = output(job, plane, "ann", "/prime-train resume")
    assert (did.code, did.outputs.get("run"), did.outputs.get("state")) == (0, run_id, "queued"), did.log


def test_a_run_that_is_being_stopped_is_not_resumed_yet(job: Job, plane: dict[str, str], run_id: str) -> None:
    output(job, plane, "ann", "/prime-train stop")
    did = output(job, plane, "ann", f"/prime-train resume {run_id}")
    assert did.code == 3
    assert "is still being stopped" in did.log
