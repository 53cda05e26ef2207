"""The senders of requests: tokens of jobs, of an app's installations and of people, and their rights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

ACTIONS_BOT = "github-actions[bot]"
LEVELS = ("none", "read", "write", "admin")
Needs = Sequence[tuple[str, str]]
"""Alternative permissions, each with the required level."""


class Kind(StrEnum):
    JOB = "job"
    INSTALLATION = "installation"
    PERSON = "person"


@dataclass(frozen=True)
class Token:
    """A token. `permissions`: level by name, with underscores. `repos`: full names; None is all that the
    person sees.
    """

    value: str
    kind: Kind
    login: str
    permissions: Mapping[str, str]
    repos: frozenset[str] | None
    expires_s: float = float("inf")
    number: int = 0
    scopes: frozenset[str] | None = None
    """Scopes of a token that GitHub's own tool has got by a log-in in the browser; None for tokens that have
    permissions instead.
    """

    def may(self, permission: str, level: str) -> bool:
        given = "read" if permission == "metadata" else self.permissions.get(permission, "none")
        return LEVELS.index(given) >= LEVELS.index(level)

    def may_any(self, needs: Needs) -> bool:
        return not needs or any(self.may(permission, level) for permission, level in needs)

    @property
    def whom(self) -> str:
        return "personal access token" if self.kind is Kind.PERSON else "integration"


def normal(permissions: Mapping[str, str], *, read_only: bool = False) -> dict[str, str]:
    """Return the permissions as under `permissions:` of a job, or by an app. `read_only`: as for pull
    requests of forks.
    """
    unknown = [level for level in permissions.values() if level not in LEVELS]
    assert not unknown, f"no such level of a permission: {unknown}"
    lowered = {name.replace("-", "_"): level for name, level in permissions.items()}
    return {name: "read" if read_only and level != "none" else level for name, level in lowered.items()}


@dataclass(frozen=True)
class App:
    """A GitHub App and its one installation. `private_key` is what its owner downloads: PEM."""

    slug: str
    app_id: int
    installation_id: int
    private_key: str
    permissions: Mapping[str, str]
    repos: frozenset[str] = field(default_factory=frozenset)

    @property
    def login(self) -> str:
        return f"{self.slug}[bot]"
