"""Event files as GitHub writes them, made from the fake's content."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.github import FakeGitHub, events
from tests.fakes.github.client import REPO, WRITER, call, git

LAUNCH = "on: {repository_dispatch: {types: launch}, workflow_dispatch: {}}\njobs: {}\n"


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        fake.add_repo(REPO, files={"configs/a.yaml": "steps: 1\n", ".github/workflows/launch.yml": LAUNCH})
        fake.add_user("ada", repo=REPO, role="write")
        yield fake
        assert fake.violations == []


def last(fake: FakeGitHub, name: str) -> Any:
    event = fake.events()[-1]
    assert event["name"] == name
    return event["payload"]


def test_a_pull_request_is_opened_changed_labeled_and_merged(fake: FakeGitHub) -> None:
    number = fake.add_pull(REPO, "topic", author="ada", files={"configs/b.yaml": "steps: 2\n"})
    opened = last(fake, "pull_request")
    assert (opened["action"], opened["number"], opened["pull_request"]["author_association"]) == (
        "opened",
        1,
        "COLLABORATOR",
    )
    sha = fake.push(REPO, "topic", {"configs/b.yaml": "steps: 3\n"}, by="ada")
    changed = last(fake, "pull_request")
    assert (changed["action"], changed["before"], changed["after"]) == (
        "synchronize",
        opened["pull_request"]["head"]["sha"],
        sha,
    )
    fake.label(REPO, number, "train", by="ada")
    labeled = last(fake, "pull_request")
    assert (labeled["action"], labeled["label"]["name"], labeled["sender"]["type"]) == (
        "labeled",
        "train",
        "User",
    )
    merged = fake.merge(REPO, number, by="ada")
    closed, pushed = fake.events()[-2]["payload"], last(fake, "push")
    assert (closed["action"], closed["pull_request"]["merged"], pushed["after"]) == ("closed", True, merged)
    assert [path for commit in pushed["commits"] for path in commit["added"]] == [
        "configs/b.yaml",
        "configs/b.yaml",
    ]


def test_a_pull_request_that_is_closed_is_not_merged(fake: FakeGitHub) -> None:
    fake.close(REPO, fake.add_pull(REPO, "topic", author="ada", files={"a": "1"}), by="ada")
    closed = last(fake, "pull_request")
    assert (closed["action"], closed["pull_request"]["state"], closed["pull_request"]["merged"]) == (
        "closed",
        "closed",
        False,
    )
    fake.push(REPO, "topic", {"a": "2"}, by="ada")
    assert last(fake, "push")["ref"] == "refs/heads/topic"


def test_a_label_of_a_bot_says_so(fake: FakeGitHub) -> None:
    fake.add_user("robot[bot]", kind="Bot")
    fake.label(REPO, fake.add_pull(REPO, "topic", author="ada", files={"a": "1"}), "train", by="robot[bot]")
    assert last(fake, "pull_request")["sender"]["type"] == "Bot"


def test_a_pull_request_of_a_fork_says_so(fake: FakeGitHub) -> None:
    fake.add_pull(REPO, "topic", author="eve", fork="eve/train", files={"a": "1"})
    opened = last(fake, "pull_request")["pull_request"]
    assert (opened["head"]["repo"]["full_name"], opened["base"]["repo"]["full_name"]) == ("eve/train", REPO)
    assert (opened["head"]["repo"]["fork"], opened["author_association"]) == (True, "NONE")


@pytest.mark.parametrize(
    ("author", "association"), [("acme", "OWNER"), ("ada", "COLLABORATOR"), ("eve", "NONE")]
)
def test_a_comment_says_what_its_author_is_here(fake: FakeGitHub, author: str, association: str) -> None:
    number = fake.add_pull(REPO, "topic", author="ada", files={"a": "1"})
    fake.comment(REPO, number, author=author, body="/prime-train stop")
    message = last(fake, "issue_comment")
    assert (message["comment"]["body"], message["comment"]["author_association"]) == (
        "/prime-train stop",
        association,
    )
    assert (message["issue"]["number"], message["sender"]["login"], "pull_request" in message["issue"]) == (
        number,
        author,
        True,
    )


def test_dispatches_carry_what_was_given(fake: FakeGitHub) -> None:
    token = fake.job_token(REPO, WRITER)
    call(
        fake,
        "POST",
        f"/repos/{REPO}/dispatches",
        token=token,
        body={"event_type": "launch", "client_payload": {"config": "a"}},
    )
    sent = last(fake, "repository_dispatch")
    assert (sent["action"], sent["client_payload"], sent["branch"]) == ("launch", {"config": "a"}, "main")
    call(
        fake,
        "POST",
        f"/repos/{REPO}/actions/workflows/launch.yml/dispatches",
        token=token,
        body={"ref": "main"},
    )
    sent = last(fake, "workflow_dispatch")
    assert (sent["ref"], sent["workflow"], sent["inputs"]) == (
        "refs/heads/main",
        ".github/workflows/launch.yml",
        {},
    )
    assert [run["event"] for run in fake.runs(REPO)] == ["repository_dispatch", "workflow_dispatch"]


def test_a_branch_that_is_new_was_nowhere(fake: FakeGitHub) -> None:
    fake.push(REPO, "fresh", {"a": "1"}, by="ada")
    pushed = last(fake, "push")
    assert (pushed["ref"], pushed["created"], pushed["before"]) == ("refs/heads/fresh", True, "0" * 40)


def test_a_schedule_names_its_cron(fake: FakeGitHub) -> None:
    event = fake.schedule(REPO, "17,47 * * * *")
    assert (event["schedule"], event["repository"]["full_name"]) == ("17,47 * * * *", REPO)


def test_a_payload_that_github_would_not_write_is_reported(fake: FakeGitHub) -> None:
    fake.push(REPO, "main", {"a": "1"}, by="ada")
    assert events.faults("push$event", {**last(fake, "push"), "ref": 5}) == [
        "$.ref: 5 is not of type 'string'"
    ]


def test_a_real_repository_goes_on_and_its_pull_requests_follow(fake: FakeGitHub, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path, "checkout", "-q", "-b", "topic")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second")
    fake.add_repo("acme/real", folder=str(tmp_path))
    number = fake.add_pull("acme/real", "topic", author="ada")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "third")
    fake.load("acme/real", str(tmp_path))
    assert (
        last(fake, "pull_request")["after"]
        == fake.pull("acme/real", number)["head"]["sha"]
        == git(tmp_path, "rev-parse", "topic")
    )
