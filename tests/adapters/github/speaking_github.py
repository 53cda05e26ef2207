"""A fake GitHub with one repository and one pull request, and clients of it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from prime_train.github.api import GitHub
from tests.fakes.github import FakeGitHub

REPO = "acme/models"
WRITES = {"contents": "read", "pull-requests": "write", "deployments": "write"}


@dataclass
class Time:
    """A clock that advances only when a test advances it."""

    now_s: float = field(default_factory=time.monotonic)

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def spoken_to() -> Iterator[FakeGitHub]:
    """Return a fake GitHub and a client. It uses the real time, because the end of a rate limit is given as a
    point in time.
    """
    with FakeGitHub(running=True) as fake:
        fake.add_repo(REPO, files={"configs/a.yaml": "name: a\n"})
        fake.add_user("ann", repo=REPO, role="write")
        fake.add_pull(REPO, "change", author="ann", files={"configs/a.yaml": "name: b\n"})
        yield fake
        assert not fake.violations, fake.violations


def as_job(fake: FakeGitHub, clock: Time | None = None, *, permissions: Mapping[str, str] = WRITES) -> GitHub:
    token = fake.job_token(REPO, permissions)
    return GitHub(REPO, token, url=fake.url, clock=clock or Time())


def as_person(fake: FakeGitHub, login: str = "ann") -> GitHub:
    return GitHub(REPO, fake.person_token(login), url=fake.url)


def writes(fake: FakeGitHub) -> list[str]:
    """Return the method and the last part of the path of each request that changed something."""
    return [f"{call.method} {call.path.rpartition('/')[2]}" for call in fake.requests if call.method != "GET"]
