"""The identity used for GitHub: an App takes precedence over a token of the user, and that over the job's
token.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.github.auth import client, speaks
from prime_train.github.comments import upsert_sticky
from prime_train.github.repository import pull_of
from tests.adapters.github.speaking_github import REPO, WRITES, spoken_to
from tests.fakes.github import FakeGitHub

RIGHTS = {"pull_requests": "write", "deployments": "write"}


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with spoken_to() as fake:
        yield fake


def author(fake: FakeGitHub, **environment: str) -> str:
    upsert_sticky(client({"GITHUB_API_URL": fake.url, **environment})(REPO), 1, "run:a", "text")
    return str(fake.comments(REPO, 1)[-1]["user"]["login"])


def test_an_app_comes_before_a_token_and_that_before_the_jobs(fake: FakeGitHub, tmp_path: Path) -> None:
    app = fake.add_app("trainer", RIGHTS, [REPO])
    job = {"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": fake.job_token(REPO, WRITES)}
    mine = job | {"PRIME_TRAIN_GITHUB_TOKEN": fake.person_token("ann")}
    of_app = mine | {
        "PRIME_TRAIN_GITHUB_APP_ID": str(app["app_id"]),
        "PRIME_TRAIN_GITHUB_APP_KEY": app["private_key"],
    }
    assert author(fake, **of_app) == "trainer[bot]"
    (tmp_path / "key.pem").write_text(app["private_key"])
    assert (
        author(fake, **(of_app | {"PRIME_TRAIN_GITHUB_APP_KEY": str(tmp_path / "key.pem")})) == "trainer[bot]"
    )
    assert [comment["user"]["login"] for comment in fake.comments(REPO, 1)] == ["trainer[bot]"]
    assert author(fake, **mine) == "ann"
    assert author(fake, **job) == "github-actions[bot]"


def test_outside_of_a_job_its_token_is_for_other_tools() -> None:
    assert not speaks({"GITHUB_TOKEN": "x"})
    assert speaks({"GITHUB_TOKEN": "x", "GITHUB_ACTIONS": "true"})
    assert speaks({"PRIME_TRAIN_GITHUB_TOKEN": "x"})


@pytest.mark.parametrize("key", ["", "no key", "/nowhere/key.pem", "/"])
def test_half_an_app_is_refused_before_anything_is_watched(tmp_path: Path, key: str) -> None:
    environment = {"PRIME_TRAIN_GITHUB_APP_ID": "1", "PRIME_TRAIN_GITHUB_APP_KEY": key}
    with pytest.raises(UsageError, match="neither a private key nor a readable file"):
        client(environment)
    with pytest.raises(UsageError, match="neither a private key nor a readable file"):
        Home(tmp_path, environment).context("http://127.0.0.1:1")


def test_the_world_of_a_home_shows_runs_where_it_may_speak(fake: FakeGitHub, tmp_path: Path) -> None:
    quiet, speaking = (
        Home(tmp_path, {}),
        Home(tmp_path, {"PRIME_TRAIN_GITHUB_TOKEN": fake.person_token("ann"), "GITHUB_API_URL": fake.url}),
    )
    names = [
        [type(one).__name__ for one in home.context("http://127.0.0.1:1").notifiers]
        for home in (quiet, speaking)
    ]
    assert ["GitHubNotifier" in one for one in names] == [False, True]
    assert pull_of(client(speaking.environment)(REPO), 1).number == 1
