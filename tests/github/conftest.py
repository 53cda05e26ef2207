"""Fixtures shared by tests of actions and workflows: the project as others refer to it, made once, and
act.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.github import FakeGitHub
from tests.github import scratch
from tests.github.act import Act, act_program
from tests.github.workplace import Workplace


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project without its code, for steps that find prime-train installed."""
    return scratch.product(tmp_path_factory.mktemp("project"), has_code=False)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Path:
    return scratch.warm(tmp_path_factory.mktemp("warm") / "prime-train", project)


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Path:
    """Return a replacement of an installation: a prime-train that only prints its arguments."""
    return scratch.warm(
        tmp_path_factory.mktemp("recorder") / "prime-train", project, Path(__file__).parent / "recorder.py"
    )


@pytest.fixture
def act(tmp_path: Path, project: Path) -> Act:
    program = act_program()
    assert program, "mark the test with needs_act"
    return Act(program, tmp_path / "act", scratch.folders(project))


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub(running=True) as fake:
        yield fake
        assert fake.violations == []


@pytest.fixture
def workplace(github: FakeGitHub, act: Act, installed: Path, tmp_path: Path) -> Workplace:
    return Workplace(github, act, installed, tmp_path / "models")
