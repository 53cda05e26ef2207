"""A run as a deployment, and queries about a repository: commits, changed files, who may write."""

from collections.abc import Iterator

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.github.deployments import deployment_of, new_deployment, set_status
from prime_train.github.repository import (
    changed_files,
    content_at,
    has_commit,
    may_write,
    pull_of,
    pulls_with,
)
from prime_train.runs.run import TERMINAL, RunState
from tests.adapters.github.speaking_github import REPO, as_job, spoken_to, writes
from tests.fakes.github import FakeGitHub
from tests.fakes.http import Response


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with spoken_to() as fake:
        yield fake


def test_a_run_is_a_deployment_of_its_commit_with_an_environment_of_its_own(fake: FakeGitHub) -> None:
    github = as_job(fake)
    assert deployment_of(github, "run-1") is None
    made = new_deployment(github, "run-1", "main", "x" * 300)
    (shown,) = fake.deployments(REPO)
    assert (shown["environment"], shown["transient_environment"], shown["production_environment"]) == (
        "prime-train/run-1",
        True,
        False,
    )
    assert shown["payload"] == {"run": "run-1"}
    assert deployment_of(github, "run-1") == made
    assert deployment_of(github, "run-2") is None


def test_each_state_is_one_of_githubs(fake: FakeGitHub) -> None:
    github = as_job(fake)
    made = new_deployment(github, "run-1", "main", "")
    for state in RunState:
        assert set_status(
            github,
            made,
            state,
            state.value,
            log_url="https://example.com/log",
            page_url="https://example.com/pull/1",
        )
        status = fake.deployments(REPO)[0]["statuses"][-1]
        assert (status["description"], status["log_url"]) == (state.value, "https://example.com/log")
        assert (status["state"] in ("success", "failure", "error", "inactive")) == (state in TERMINAL)


def test_a_status_is_not_repeated(fake: FakeGitHub) -> None:
    github = as_job(fake)
    made = new_deployment(github, "run-1", "main", "")
    sent = [
        set_status(github, made, RunState.TRAINING, message)
        for message in ("step 1", "step 1", "step 2", "x" * 200, "x" * 200)
    ]
    assert sent == [True, False, True, True, False]
    message = [status["description"] for status in fake.deployments(REPO)[0]["statuses"]]
    assert message == ["step 1", "step 2", "x" * 139 + "…"]


def test_a_run_that_succeeds_ends_no_other(fake: FakeGitHub) -> None:
    github = as_job(fake)
    made = [new_deployment(github, "run-1", "main", "") for _ in range(2)]
    set_status(github, made[0], RunState.SUCCEEDED, "one")
    set_status(github, made[1], RunState.SUCCEEDED, "two")
    states = [[status["state"] for status in deployment["statuses"]] for deployment in fake.deployments(REPO)]
    assert states == [["success"], ["success"]]


def test_an_answer_that_is_none_is_an_error_of_ours(fake: FakeGitHub) -> None:
    for body in (b'[{"id": "x"}]', b"[null]"):
        fake.fail(Response(200, body), method="GET", path="deployments")
        with pytest.raises(TemporaryError, match="cannot be parsed"):
            deployment_of(as_job(fake), "run-1")


def test_a_deployment_of_a_commit_that_is_not_there_is_refused(fake: FakeGitHub) -> None:
    with pytest.raises(PermanentError, match="422"):
        new_deployment(as_job(fake), "run-1", "0" * 40, "")


# ------------------------------------------------------------------------------------------------------------
# the repository


def test_who_may_write(fake: FakeGitHub) -> None:
    for role in ("admin", "maintain", "write", "triage", "read"):
        fake.add_user(f"a-{role}", repo=REPO, role=role)
    may = [
        name
        for name in ("admin", "maintain", "write", "triage", "read", "stranger")
        if may_write(as_job(fake), f"a-{name}")
    ]
    assert may == ["admin", "maintain", "write"]


def test_a_name_that_is_none_may_not_write(fake: FakeGitHub) -> None:
    for login in (
        "",
        "../..",
        "ann/../ann",
        "ann?x=1",
        "ann#",
        "no body",
        "a" * 3000,
        "%2e%2e",
        "..",
        "ann/permission?",
        "-ann",
    ):
        assert not may_write(as_job(fake), login)


def test_a_commit_is_there_or_not(fake: FakeGitHub) -> None:
    head = fake.pull(REPO, 1)["head"]["sha"]
    assert [
        has_commit(as_job(fake), commit) for commit in (head, "0" * 40, "not a commit", "../pulls/1")
    ] == [True, False, False, False]
    for status in (404, 422):
        fake.fail(Response(status, b'{"message": "No commit found for SHA"}'), path="commits")
        assert not has_commit(as_job(fake), head)
    assert pulls_with(as_job(fake), head) == [1]
    assert pull_of(as_job(fake), 1).head.sha == head


def test_changed_files_come_on_several_pages(fake: FakeGitHub) -> None:
    number = fake.add_pull(
        REPO, "many", author="ann", files={f"configs/{number:03}.yaml": "name: a\n" for number in range(230)}
    )
    assert [file.filename for file in changed_files(as_job(fake), number)] == [
        f"configs/{number:03}.yaml" for number in range(230)
    ]


def test_a_file_is_read_at_a_commit(fake: FakeGitHub) -> None:
    github = as_job(fake)
    fake.push(REPO, "main", {"configs/a b#1?.yaml": "name: ä\n"}, by="ann")
    assert content_at(github, "./configs/a.yaml", "main") == "name: a\n"
    assert content_at(github, "configs/a b#1?.yaml", "main") == "name: ä\n"
    assert content_at(github, "configs/b.yaml", "main") is None
    assert content_at(github, "configs", "main") is None
    for path in ("../../../user", "/etc/passwd", "configs/../../x"):
        with pytest.raises(PermanentError, match="is not a path"):
            content_at(github, path, "main")
    assert writes(fake) == []
