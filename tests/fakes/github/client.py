"""A client of the fake for tests: sends requests as a client of GitHub would."""

import os
import subprocess
from pathlib import Path
from typing import Any

import requests

from tests.fakes.github import FakeGitHub

ANSWER_S_MAX = 60.0
REPO = "acme/train"
WRITER = {
    "contents": "write",
    "issues": "write",
    "pull-requests": "write",
    "deployments": "write",
    "actions": "write",
    "statuses": "write",
}


def ask(
    fake: FakeGitHub, method: str, path: str, *, token: str = "", body: object = None, **headers: str
) -> requests.Response:
    """Send a request. `path` may have a query; `_` in a header's name stands for `-`."""
    sent = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    sent |= {"Authorization": f"Bearer {token}"} if token else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.request(
        method, fake.url + path, headers=sent, json=body, timeout=ANSWER_S_MAX, allow_redirects=False
    )


def call(fake: FakeGitHub, method: str, path: str, *, token: str, body: object = None) -> Any:
    """Return the content of the response, which must be a success."""
    answer = ask(fake, method, path, token=token, body=body)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def refusal(
    fake: FakeGitHub, method: str, path: str, *, token: str = "", body: object = None
) -> tuple[int, str]:
    """Return status and message of a refusal."""
    answer = ask(fake, method, path, token=token, body=body)
    return answer.status_code, answer.json()["message"]


def git(folder: Path, *words: str) -> str:
    """Return git's output in that folder."""
    who = {
        f"GIT_{who}_{what}": "someone@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(
        command, check=True, capture_output=True, timeout=ANSWER_S_MAX, env={**os.environ, **who}
    )
    return done.stdout.decode().strip()
