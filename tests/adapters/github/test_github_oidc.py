"""Tokens of GitHub's jobs: only those count that its issuer has signed, for this address, now; and a stranger
cannot make it a burden.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.github.oidc import AGAIN_S, KEYS_S, PAUSE_S, GithubTokens, token_of_job
from tests.fakes.github_oidc import FakeGithubOidc, SigningKey
from tests.fakes.http import Response

HERE = "https://train.example.org"


@pytest.fixture
def github() -> Iterator[FakeGithubOidc]:
    with FakeGithubOidc() as fake:
        yield fake


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def readings(github: FakeGithubOidc) -> int:
    return len([one for one in github.requests if one.path.endswith("/jwks")])


def test_what_github_has_signed_for_this_address_is_believed(github: FakeGithubOidc) -> None:
    claims = GithubTokens(github.url).claims(github.token(HERE), HERE)
    assert (claims["repository"], claims["environment"], claims["actor"]) == ("acme/rl", "gpu", "ann")


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://github.com/acme"},
        {"aud": [HERE, "https://other.example"]},
        {"aud": None},
        {"iss": "https://other.example"},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"repository": None},
        {"actor": None},
    ],
)
def test_a_token_for_somebody_else_or_another_time_is_refused(
    github: FakeGithubOidc, claims: dict[str, Any]
) -> None:
    with pytest.raises(PermanentError):
        GithubTokens(github.url).claims(github.token(HERE, **claims), HERE)


def test_a_token_that_github_has_not_signed_is_refused(github: FakeGithubOidc) -> None:
    tokens, good = GithubTokens(github.url), github.token(HERE)
    head, _, signature = good.split(".")
    body = base64.urlsafe_b64encode(json.dumps({"repository": "acme/other"}).encode()).decode().rstrip("=")
    forged = [
        github.token(HERE, signed_by=SigningKey("key-1")),
        github.token(HERE, signed_by=SigningKey("key-2")),
        github.token(HERE, algorithm="none"),
        f"{head}.{body}.{signature}",
        "a.b.c",
        "",
    ]
    for token in forged:
        with pytest.raises(PermanentError):
            tokens.claims(token, HERE)
    assert tokens.claims(good, HERE)["repository"] == "acme/rl"


def test_keys_are_read_once_and_again_for_a_new_one_but_not_for_every_stranger(
    github: FakeGithubOidc,
) -> None:
    clock = Clock()
    tokens = GithubTokens(github.url, clock=clock)
    for _ in range(3):
        tokens.claims(github.token(HERE), HERE)
    assert readings(github) == 1
    newer = SigningKey("key-2")
    for _ in range(5):
        with pytest.raises(PermanentError):
            tokens.claims(github.token(HERE, signed_by=newer), HERE)
    assert readings(github) == 1
    github.published.append(newer)
    clock.now_s += AGAIN_S + 1
    assert tokens.claims(github.token(HERE, signed_by=newer), HERE)
    assert readings(github) == 2
    clock.now_s += KEYS_S + 1
    assert tokens.claims(github.token(HERE), HERE)
    assert readings(github) == 3


def test_keys_that_cannot_be_read_now_are_tried_again_after_a_pause(github: FakeGithubOidc) -> None:
    clock = Clock()
    tokens = GithubTokens(github.url, clock=clock)
    github.fail(Response(200, b"<html>"), path="/.well-known/jwks")
    for _ in range(3):
        with pytest.raises(TemporaryError):
            tokens.claims(github.token(HERE), HERE)
    assert readings(github) == 1
    github.heal()
    clock.now_s += PAUSE_S
    assert tokens.claims(github.token(HERE), HERE)


def test_a_job_requests_a_token_for_the_control_planes_address(github: FakeGithubOidc) -> None:
    token = token_of_job(github.of_job(), HERE)
    assert GithubTokens(github.url).claims(token, HERE)
    assert token_of_job({}, HERE) == ""
    with pytest.raises(PermanentError, match="401"):
        token_of_job(github.of_job() | {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "another"}, HERE)
