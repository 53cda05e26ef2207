"""The content of a repository: pull requests, comments, deployments, checks and workflow runs."""

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.github.git import Git

WRITERS = ("write", "maintain", "admin")
ROLES = ("none", "read", "triage", *WRITERS)


@dataclass(frozen=True)
class User:
    login: str
    user_id: int
    kind: str = "User"


@dataclass
class Comment:
    comment_id: int
    number: int
    author: str
    body: str
    made_s: float
    changed_s: float
    reactions: list[tuple[int, str, str]] = field(default_factory=list)
    """Reactions: id, login and content of each."""


@dataclass
class Pull:
    """A pull request. `head_repo` is the fork's full name if it comes from one."""

    pull_id: int
    number: int
    title: str
    author: str
    base_ref: str
    base_sha: str
    head_repo: str
    head_ref: str
    head_sha: str
    made_s: float
    body: str = ""
    state: str = "open"
    merged_sha: str | None = None
    is_locked: bool = False
    labels: list[str] = field(default_factory=list)


@dataclass
class DeploymentStatus:
    status_id: int
    state: str
    creator: str
    description: str
    environment: str
    environment_url: str
    log_url: str
    made_s: float


@dataclass
class Deployment:
    deployment_id: int
    ref: str
    sha: str
    task: str
    environment: str
    description: str | None
    payload: Any
    creator: str
    is_transient: bool
    is_production: bool
    made_s: float
    statuses: list[DeploymentStatus] = field(default_factory=list)

    @property
    def state(self) -> str:
        """Return the state as the deployment's page shows it: that of the newest status."""
        return self.statuses[-1].state if self.statuses else "pending"


@dataclass(frozen=True)
class Status:
    status_id: int
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    creator: str
    made_s: float


@dataclass
class CheckRun:
    check_run_id: int
    sha: str
    app: str
    made_s: float
    message: dict[str, Any] = field(default_factory=dict)
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Run:
    """A run of a workflow; `payload` is the event that started it."""

    run_id: int
    run_number: int
    workflow: str
    event: str
    branch: str
    sha: str
    actor: str
    made_s: float
    payload: dict[str, Any]
    status: str = "queued"
    conclusion: str | None = None


@dataclass
class Environment:
    """An environment for jobs. `reviewers`: kind and id of each; `branch_policy`: None if it may be used from
    any branch; `branches`: the patterns of those that may use it.
    """

    environment_id: int
    name: str
    made_s: float
    wait_minutes: int = 0
    prevent_self_review: bool = False
    reviewers: list[tuple[str, int]] = field(default_factory=list)
    branch_policy: dict[str, bool] | None = None
    branches: dict[int, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)


@dataclass
class Repo:
    repo_id: int
    owner: str
    name: str
    is_private: bool
    made_s: float
    git: Git
    default_branch: str = "main"
    fork_of: str | None = None
    roles: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    deployments: dict[int, Deployment] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)
    check_runs: dict[int, CheckRun] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    environments: dict[str, Environment] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    disabled: dict[str, str] = field(default_factory=dict)
    """State of each workflow that is switched off, by the path of its file."""
    allowed_actions: str = "all"
    """Which actions it runs: all, local_only or selected; empty: none."""
    keeps_rules: bool = True
    """Whether the owner's plan has rules for environments here. GitHub has them for all public repositories,
    and for private ones only on paid plans.
    """
    numbers: int = 0

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def role(self, login: str) -> str:
        if login == self.owner:
            return "admin"
        return self.roles.get(login, "none" if self.is_private else "read")

    def association(self, login: str) -> str:
        """Return GitHub's word for the relation of an author to the repository."""
        if login == self.owner:
            return "OWNER"
        if login in self.roles:
            return "COLLABORATOR"
        wrote = any(pull.author == login and pull.merged_sha for pull in self.pulls.values())
        return "CONTRIBUTOR" if wrote else "NONE"

    def deployments_to(self, environment: str) -> list[Deployment]:
        return [each for each in self.deployments.values() if each.environment == environment]
