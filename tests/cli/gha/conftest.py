from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.estimates.test_find import row
from tests.cli.gha.job import GOOD, Job
from tests.cli.shell import Shell
from tests.fakes.github import FakeGitHub
from tests.fakes.prime import FakePrime
from tests.github.scratch import repository


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """Return a job of a repository with one good config on main; ann may push to it, bob may not."""
    # A name of its own: the control plane is shared.
    repo = f"acme/{tmp_path.name.replace('_', '-')}"
    folder = repository(
        tmp_path / "checkout", {"configs/small.yaml": GOOD, "train.py": "print(1)\n"}, name=repo
    )
    with FakeGitHub(running=True) as fake:
        fake.add_repo(repo, folder=str(folder))
        fake.add_user("ann", repo=repo, role="write")
        fake.add_user("bob", repo=repo, role="read")
        yield Job(fake, folder, repo)
        assert fake.violations == []


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the variables that lead to a remote control plane without a watcher, shared by all tests."""
    shell = Shell(tmp_path_factory.mktemp("plane"))
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ", PRIME_TRAIN_PROVIDER="local"):
        yield dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())


@pytest.fixture(scope="session")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the variables of a provider with a spot machine, and the same on demand for half as much
    again.
    """
    with FakePrime(tmp_path_factory.mktemp("prime"), machines=False) as fake:
        fake.rows = (row("H100_80GB", 1, 2.9, spot=True), row("H100_80GB", 1, 4.6))
        yield {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url}
