"""A repository at the fake GitHub that uses this project's workflows, and act, which runs them with the
permissions that each job requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.github import FakeGitHub
from tests.github import scratch
from tests.github.act import Act, Ran

REPO = "acme/models"


@dataclass
class Workplace:
    """A repository. `folder`: a real git repository, whose history the fake's repository has; act runs its
    content. `installed`: see `scratch.warm`. `from_fork`: jobs are started by a fork's pull request, and so
    can only read.
    """

    github: FakeGitHub
    act: Act
    installed: Path
    folder: Path
    from_fork: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.github.add_repo(REPO)
        self.variables |= scratch.write_workflows(self.folder, self._token)
        scratch.repository(self.folder, {}, name=REPO)
        self.github.load(REPO, str(self.folder))

    def _token(self, permissions: Mapping[str, str]) -> str:
        return self.github.job_token(REPO, permissions, from_fork=self.from_fork)

    def branch(self, name: str) -> None:
        scratch.git(self.folder, "checkout", "--quiet", "-b", name)

    def push(self, files: Mapping[str, str]) -> None:
        scratch.commit(self.folder, files, "Change")
        self.github.load(REPO, str(self.folder))

    def run(self, workflow: str, event: str, payload: Mapping[str, Any] | None = None) -> Ran:
        """Run a workflow, by default with the newest event of that name at the fake."""
        if payload is None:
            payload = [each["payload"] for each in self.github.events() if each["name"] == event][-1]
        return self.act.run(
            self.folder,
            workflow,
            event,
            payload,
            api_url=self.github.url,
            secrets=self.secrets,
            variables=self.variables,
            env={scratch.WARM: str(self.installed)},
        )
