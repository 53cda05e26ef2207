"""The environments of a repository, and the rules by which a job may use one: who has to approve it, and from
which branches it comes.
"""

from collections.abc import Mapping

from prime_train.github.api import GitHub, GitHubModel, piece


class _Person(GitHubModel):
    id: int = 0


class Reviewer(GitHubModel):
    """A person or a team that may approve a job. `type`: User or Team."""

    type: str = ""
    reviewer: _Person | None = None


class ProtectionRule(GitHubModel):
    """A rule of an environment: required_reviewers, wait_timer, branch_policy, or one of an app."""

    type: str = ""
    reviewers: tuple[Reviewer, ...] | None = None
    wait_timer: int | None = None
    prevent_self_review: bool | None = None


class BranchPolicy(GitHubModel):
    protected_branches: bool = False
    custom_branch_policies: bool = False


class Environment(GitHubModel):
    """An environment. `deployment_branch_policy`: None if it may be used from any branch."""

    name: str
    protection_rules: tuple[ProtectionRule, ...] | None = None
    deployment_branch_policy: BranchPolicy | None = None

    @property
    def has_reviewers(self) -> bool:
        return any(
            rule.type == "required_reviewers" and rule.reviewers for rule in self.protection_rules or ()
        )

    @property
    def rules(self) -> dict[str, object]:
        """Return the rules in the form in which they are sent: what a request leaves out is deleted."""
        rules = self.protection_rules or ()
        reviewers = [
            {"type": one.type, "id": one.reviewer.id}
            for rule in rules
            for one in rule.reviewers or ()
            if one.reviewer
        ]
        policy = self.deployment_branch_policy
        return {
            "wait_timer": next((rule.wait_timer for rule in rules if rule.wait_timer), 0),
            "prevent_self_review": any(rule.prevent_self_review for rule in rules),
            "reviewers": reviewers or None,
            "deployment_branch_policy": policy.model_dump() if policy is not None else None,
        }


class _Environments(GitHubModel):
    environments: tuple[Environment, ...] = ()


class _Pattern(GitHubModel):
    name: str = ""


class _Patterns(GitHubModel):
    branch_policies: tuple[_Pattern, ...] = ()


class _Secret(GitHubModel):
    name: str


class _Secrets(GitHubModel):
    secrets: tuple[_Secret, ...] = ()


class _Variable(GitHubModel):
    value: str = ""


def environments(github: GitHub) -> tuple[Environment, ...] | None:
    """Return the environments; None if the token may not see them."""
    found = github.find(_Environments, "environments", {"per_page": 100})
    return None if found is None else found.environments


def put_environment(github: GitHub, name: str, rules: Mapping[str, object]) -> Environment:
    """Create the environment or replace its rules, and return it as GitHub keeps it: some plans have no rules
    for private repositories. Raises PermanentError if GitHub refuses.
    """
    return github.send(Environment, "PUT", f"environments/{piece(name)}", rules)


def allow_branch(github: GitHub, environment: str, branch: str) -> None:
    """Let the environment be used from this branch too."""
    github.ask("POST", f"environments/{piece(environment)}/deployment-branch-policies", body={"name": branch})


def secret_names(github: GitHub, environment: str, *, is_needed: bool) -> frozenset[str]:
    """Return the names of the secrets of an environment, or of the repository if that is empty; none if it
    does not exist, or unless `is_needed`, if the token may not see them.
    """
    place = f"environments/{piece(environment)}/secrets" if environment else "actions/secrets"
    found = github.find(
        _Secrets, place, {"per_page": 100}, none=frozenset({404} if is_needed else {403, 404})
    )
    return frozenset(one.name for one in found.secrets) if found is not None else frozenset()


def set_variable(github: GitHub, name: str, value: str, *, is_new: bool) -> None:
    """Create or change a variable of the repository."""
    method, path = ("POST", "actions/variables") if is_new else ("PATCH", f"actions/variables/{piece(name)}")
    github.ask(method, path, body={"name": name, "value": value})


def branches(github: GitHub, environment: Environment) -> tuple[str, ...] | None:
    """Return the patterns of branches from which the environment may be used; None if any protected branch
    may.
    """
    policy = environment.deployment_branch_policy
    if policy is None:
        return ("*",)
    if not policy.custom_branch_policies:
        return None
    found = github.get(
        _Patterns, f"environments/{piece(environment.name)}/deployment-branch-policies", {"per_page": 100}
    )
    return tuple(pattern.name for pattern in found.branch_policies)


def variable(github: GitHub, name: str) -> str:
    """Return the value of a variable of the repository; empty if there is none, or the token may not see
    it.
    """
    found = github.find(_Variable, f"actions/variables/{piece(name)}", none=frozenset({403, 404}))
    return "" if found is None else found.value
