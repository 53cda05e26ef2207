"""Check the rules of a repository's environments on GitHub, which decide who can use the keys in them, its
schedule, and the role that deploys.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prime_train.github.api import API_URL, ENV_API_URL, GitHub
from prime_train.github.environments import Environment, branches, environments, variable
from prime_train.github.role_trust import wrong_trust
from prime_train.github.schedule import schedule_off

TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
REPOSITORIES = ("GH_REPO", "GITHUB_REPOSITORY")
DEPLOY_ROLE = "PRIME_TRAIN_DEPLOY_ROLE"


@dataclass(frozen=True)
class Needs:
    """The rules that an environment has to have. `why`: what anybody could do without them."""

    reviewers: bool
    branches: bool
    why: str


ENVIRONMENTS: Mapping[str, Needs] = {
    "gpu": Needs(True, False, "whoever may push a branch can launch with its keys"),
    "gpu-watch": Needs(False, True, "whoever may push a branch can print its keys in a job"),
    "deploy": Needs(True, True, "whoever may push a branch can deploy to the AWS account"),
}
"""The environments that the workflows name."""
TrustOf = Callable[[str], object]


@dataclass(frozen=True)
class RuleCheck:
    """What was checked. `wrong`: the problem, in words; empty if there is none. `is_optional`: it could not
    be checked, or is not used.
    """

    name: str
    wrong: str = ""
    is_optional: bool = False


def repository_checks(environment: Mapping[str, str], trust_of: TrustOf | None) -> Iterator[RuleCheck]:
    """Check the repository that the environment names, with the token in it; nothing without both. `trust_of`
    returns the trust policy of a role by its ARN; None if AWS cannot be asked from here. Raises ExternalError
    if GitHub or AWS do not answer.
    """
    token, repository = _first(environment, TOKENS), _first(environment, REPOSITORIES)
    if not token or not repository:
        return
    github = GitHub(repository, token, url=environment.get(ENV_API_URL) or API_URL)
    found = environments(github)
    if found is None:
        yield RuleCheck(
            f"environments of {repository}",
            "the token may not read them; it needs the permission Actions: read",
            True,
        )
        return
    for one in found:
        if one.name in ENVIRONMENTS:
            yield RuleCheck(
                f"environment {one.name} of {repository}", _wrong(github, one, ENVIRONMENTS[one.name])
            )
    off = schedule_off(github, is_live=True)
    if off is not None:
        yield RuleCheck(f"schedule of {repository}", off.text, is_optional=not off.off.is_by_itself)
    role = environment.get(DEPLOY_ROLE) or variable(github, DEPLOY_ROLE)
    if role:
        yield _role(role, repository, trust_of)


def _role(role: str, repository: str, trust_of: TrustOf | None) -> RuleCheck:
    name = "role that deploys"
    if trust_of is None:
        return RuleCheck(name, "AWS cannot be asked from here for its trust policy", True)
    found = wrong_trust(trust_of(role), repository)
    return RuleCheck(name, f"{role}: {'; '.join(found)}; docs/aws.md has a trust policy" if found else "")


def _wrong(github: GitHub, one: Environment, needs: Needs) -> str:
    lacks = ["no reviewers"] if needs.reviewers and not one.has_reviewers else []
    if needs.branches and is_open_to_all(branches(github, one)):
        lacks.append("no limit to certain branches")
    return (
        f"it has {' and '.join(lacks)}, so that {needs.why}: set them under Settings, Environments"
        if lacks
        else ""
    )


def is_open_to_all(patterns: tuple[str, ...] | None) -> bool:
    """Return whether any branch matches one of the patterns. None stands for all protected branches."""
    return patterns is not None and any(not pattern.strip("*/") for pattern in patterns)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environment[name].strip() for name in names if environment.get(name, "").strip()), "")
