"""A pull request's configs are checked by the workflow, as act runs it, with a GitHub that limits it to the
job's permissions.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.signing import (
    MARKET_PATH,
    OFFERS_PATH,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    market_key,
    sign,
)
from tests.fakes.github import FakeGitHub
from tests.fakes.http import Response, ScriptedServer
from tests.github.act import Act, Ran, needs_act
from tests.github.workplace import REPO, Workplace

pytestmark = needs_act

GOOD = "name: demo\ntrainer:\n  command: python train.py\n  steps: 100\nbudget:\n  usd: 20\n"
BAD = GOOD.replace("budget:\n", "bugdet:\n")
MASTER = bytes(32)
KEY = market_key(MASTER)
BRANCH = "x$(touch${IFS}pwned)`pwned`;'\""
HOSTILE = "configs/it's $(touch pwned)`touch pwned`;%0A::error::planted.yaml"


class PullRequest:
    """A pull request from a branch here, or from a fork's."""

    def __init__(self, here: Workplace, fork: str | None = None) -> None:
        self.here, self.fork, self.number = here, fork, 0
        here.branch(BRANCH)

    def pushed(self, files: dict[str, str]) -> Ran:
        """Push the files. Return the commit, and the workflow's result for it."""
        self.here.push(files)
        if not self.number:
            more: dict[str, Any] = {"fork": self.fork, "files": files} if self.fork else {}
            self.number = self.here.github.add_pull(REPO, BRANCH, author="octocat", **more)
        ran = self.here.run("validate.yml", "pull_request")
        assert not list(self.here.act.home.rglob("*pwned"))
        return ran

    @property
    def comments(self) -> list[str]:
        return [comment["body"] for comment in self.here.github.comments(REPO, self.number)]


@pytest.fixture
def pull(workplace: Workplace) -> PullRequest:
    return PullRequest(workplace)


def test_a_bad_config_is_reported_at_its_line_and_a_good_one_clears_it(pull: PullRequest) -> None:
    bad = pull.pushed({"configs/demo.yaml": BAD})
    step = bad.step("validate", "validate")
    assert (step.result, step.outputs["valid"]) == ("failure", "false")
    assert ("error", "configs/demo.yaml", 5) in [
        (note.level, note.file, note.line) for note in bad.step("validate", "validate/verb").annotations
    ]
    (reported,) = pull.comments
    assert "bugdet" in reported

    good = pull.pushed({"configs/demo.yaml": GOOD})
    step = good.step("validate", "validate")
    assert (step.result, step.outputs["valid"]) == ("success", "true"), good.reported
    assert json.loads(step.outputs["configs"]) == ["configs/demo.yaml"]
    (reported,) = pull.comments
    assert "bugdet" not in reported
    assert good.step("validate", "validate/verb").summary


def test_a_forks_pull_request_is_judged_without_a_comment_and_without_a_failure_for_that(
    github: FakeGitHub, act: Act, installed: Path, tmp_path: Path
) -> None:
    pull = PullRequest(
        Workplace(github, act, installed, tmp_path / "models", from_fork=True), fork="stranger/models"
    )
    ran = pull.pushed({"configs/demo.yaml": GOOD})
    step = ran.step("validate", "validate")
    assert (step.result, step.outputs["valid"], step.outputs["comment-url"]) == ("success", "true", ""), (
        ran.reported
    )
    assert pull.comments == []
    assert "demo" in ran.step("validate", "validate/verb").summary


def test_the_control_plane_is_asked_what_earlier_runs_have_shown_with_a_key_of_its_own(
    pull: PullRequest,
) -> None:
    with ScriptedServer(Response(200, b"{}"), Response(200, b"null")) as plane:
        pull.here.variables["PRIME_TRAIN_URL"] = plane.url
        pull.here.secrets |= {"PRIME_TRAIN_MARKET_KEY": KEY, "PRIME_TRAIN_MASTER_KEY": MASTER.hex()}
        ran = pull.pushed({"configs/demo.yaml": GOOD})
        request, offers = plane.requests
    at_s = int(request.headers[TIMESTAMP_HEADER])
    assert (request.method, request.path) == ("GET", MARKET_PATH)
    assert request.headers[SIGNATURE_HEADER] == sign(KEY, at_s, "GET", MARKET_PATH, b"")
    assert (offers.method, offers.path) == ("POST", OFFERS_PATH)
    assert ran.step("validate", "validate").result == "success", ran.reported
    assert KEY not in "".join([ran.reported, *pull.comments])


def test_a_path_or_a_branch_is_never_a_command(pull: PullRequest) -> None:
    ran = pull.pushed({HOSTILE: BAD})
    annotations = ran.step("validate", "validate/verb").annotations
    assert {note.file for note in annotations} == {HOSTILE}, ran.reported
    assert "planted" not in {note.title for note in annotations}


def test_a_pull_request_without_a_config_passes_in_silence(pull: PullRequest) -> None:
    ran = pull.pushed({"README.md": "no config\n"})
    assert ran.step("validate", "validate").outputs["configs"] == "[]", ran.reported
    assert pull.comments == []


def test_a_merge_queue_gets_its_check(pull: PullRequest) -> None:
    pull.pushed({"configs/demo.yaml": GOOD})
    event = pull.here.github.add_merge_group(REPO, pull.number)
    ran = pull.here.run("validate.yml", "merge_group", event)
    step = ran.step("validate", "validate")
    assert (step.result, step.outputs["valid"], step.outputs["comment-url"]) == ("success", "true", ""), (
        ran.reported
    )
    assert len(pull.comments) == 1
