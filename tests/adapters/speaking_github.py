"""A fake GitHub with one repository and one pull request, and who speaks to it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from prime_train.adapters.github import GitHub
from tests.fakes.github import FakeGitHub

REPO = "acme/models"
WRITES = {"contents": "read", "pull-requests": "write", "deployments": "write"}


@dataclass
class Time:
    """Seconds that pass when a test says so."""

    now_s: float = field(default_factory=time.monotonic)

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def spoken_to() -> Iterator[FakeGitHub]:
    """Its time is the real one: a limit's end is told as a moment."""
    with FakeGitHub(running=True) as fake:
        fake.add_repo(REPO, files={"configs/a.yaml": "name: a\n"})
        fake.add_user("ann", repo=REPO, role="write")
        fake.add_pull(REPO, "change", author="ann", files={"configs/a.yaml": "name: b\n"})
        yield fake
        assert fake.violations == []


def as_job(fake: FakeGitHub, clock: Time | None = None, *, permissions: Mapping[str, str] = WRITES) -> GitHub:
    token = fake.job_token(REPO, permissions)
    return GitHub(REPO, token, url=fake.url, clock=clock or Time())


def as_person(fake: FakeGitHub, login: str = "ann") -> GitHub:
    return GitHub(REPO, fake.person_token(login), url=fake.url)


def writes(fake: FakeGitHub) -> list[str]:
    """Method and the last part of the path of each call that changed something."""
    return [f"{call.method} {call.path.rpartition('/')[2]}" for call in fake.calls if call.method != "GET"]
