"""Authentication as a GitHub App: a token valid for an hour, for one repository, renewed before it
expires.
"""

import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from prime_train.errors import PermanentError, TemporaryError
from prime_train.github.api import GitHub
from prime_train.github.app import AppKey, AppToken
from prime_train.github.comments import upsert_sticky
from prime_train.github.repository import pull_of
from tests.adapters.github.speaking_github import REPO, Time, spoken_to
from tests.fakes.github import FakeGitHub

RIGHTS = {"pull_requests": "write", "deployments": "write", "metadata": "read"}


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with spoken_to() as fake:
        yield fake


def key_of(fake: FakeGitHub, repos: list[str] | None = None) -> AppKey:
    app = fake.add_app("trainer", RIGHTS, [REPO] if repos is None else repos)
    return AppKey(str(app["app_id"]), app["private_key"])


def tokens_made(fake: FakeGitHub) -> int:
    return [call.path.rpartition("/")[2] for call in fake.requests].count("access_tokens")


def test_an_app_speaks_with_a_token_for_this_repository_alone(fake: FakeGitHub) -> None:
    fake.add_repo("acme/other", files={"a": "b"})
    app = AppToken(key_of(fake, [REPO, "acme/other"]), REPO, url=fake.url)
    github = GitHub(REPO, app, url=fake.url, login=app.login())
    assert github.login == "trainer[bot]"
    for text in ("one", "two"):
        upsert_sticky(github, 1, "run:a", text)
    (comment,) = fake.comments(REPO, 1)
    assert (comment["user"]["login"], comment["body"].splitlines()[1]) == ("trainer[bot]", "two")
    assert tokens_made(fake) == 1
    with pytest.raises(PermanentError, match=r"40[34]"):
        pull_of(GitHub("acme/other", app, url=fake.url), 1)


def test_a_token_is_made_anew_before_its_hour_is_over(fake: FakeGitHub) -> None:
    clock = Time()
    github = GitHub(REPO, AppToken(key_of(fake), REPO, url=fake.url, clock=clock), url=fake.url)
    for minutes, made in ((0, 1), (54, 1), (2, 2), (54, 2), (60, 3)):
        clock.now_s += 60 * minutes
        pull_of(github, 1)
        assert tokens_made(fake) == made


def test_several_threads_share_one_token(fake: FakeGitHub) -> None:
    app = AppToken(key_of(fake), REPO, url=fake.url)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: app(), range(8)))) == 1
    assert tokens_made(fake) == 1


def test_a_failure_leaves_no_half_token(fake: FakeGitHub) -> None:
    github = GitHub(REPO, AppToken(key_of(fake), REPO, url=fake.url), url=fake.url)
    fake.fail("500", method="POST")
    with pytest.raises(TemporaryError, match="500"):
        pull_of(github, 1)
    assert pull_of(github, 1).number == 1


def test_an_app_that_is_not_installed_there_is_refused(fake: FakeGitHub) -> None:
    with pytest.raises(PermanentError, match="404"):
        AppToken(key_of(fake, []), REPO, url=fake.url)()


def test_a_key_of_another_app_is_refused(fake: FakeGitHub) -> None:
    key = key_of(fake)
    with pytest.raises(PermanentError, match=r"40[14]"):
        AppToken(AppKey("999", key.pem), REPO, url=fake.url)()


def no_rsa() -> str:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    return pem.decode()


def test_a_key_that_is_none_is_reported_without_it(fake: FakeGitHub) -> None:
    key = key_of(fake)
    block = "-----BEGIN RSA PRIVATE KEY-----\nU2VrcmV0\n-----END RSA PRIVATE KEY-----"
    for pem in ("", "not a key", block, key.pem[: len(key.pem) // 2], no_rsa()):
        with pytest.raises(PermanentError, match="not a private RSA key in PEM format") as error:
            AppToken(AppKey(key.app_id, pem), REPO, url=fake.url)()
        reported = "".join(traceback.format_exception(error.value, chain=True))
        assert not [
            line for line in pem.splitlines() if len(line) > 6 and line in reported and "KEY-----" not in line
        ]
    assert fake.requests == []
    assert key.pem[60:100] not in repr(key)
