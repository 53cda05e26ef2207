"""The environments of a repository, and the rules by which a job may use one: who has to approve it, and from which branches it comes."""

from prime_train.adapters.github.api import GitHub, Part, piece


class Reviewer(Part):
    type: str = ""


class ProtectionRule(Part):
    """A rule of an environment: required_reviewers, wait_timer, branch_policy, or one of an app."""

    type: str = ""
    reviewers: tuple[Reviewer, ...] | None = None


class BranchPolicy(Part):
    protected_branches: bool = False
    custom_branch_policies: bool = False


class Environment(Part):
    """An environment. `deployment_branch_policy`: None if it may be used from any branch."""

    name: str
    protection_rules: tuple[ProtectionRule, ...] | None = None
    deployment_branch_policy: BranchPolicy | None = None

    @property
    def has_reviewers(self) -> bool:
        return any(rule.type == "required_reviewers" and rule.reviewers for rule in self.protection_rules or ())


class _Environments(Part):
    environments: tuple[Environment, ...] = ()


class _Pattern(Part):
    name: str = ""


class _Patterns(Part):
    branch_policies: tuple[_Pattern, ...] = ()


class _Variable(Part):
    value: str = ""


def environments(github: GitHub) -> tuple[Environment, ...] | None:
    """Return the environments; None if the token may not see them."""
    found = github.find(_Environments, "environments", {"per_page": 100})
    return None if found is None else found.environments


def branches(github: GitHub, environment: Environment) -> tuple[str, ...] | None:
    """Return the patterns of branches from which the environment may be used; None if any protected branch may."""
    policy = environment.deployment_branch_policy
    if policy is None:
        return ("*",)
    if not policy.custom_branch_policies:
        return None
    found = github.get(_Patterns, f"environments/{piece(environment.name)}/deployment-branch-policies", {"per_page": 100})
    return tuple(pattern.name for pattern in found.branch_policies)


def variable(github: GitHub, name: str) -> str:
    """Return the value of a variable of the repository; empty if there is none, or the token may not see it."""
    found = github.find(_Variable, f"actions/variables/{piece(name)}", none=frozenset({403, 404}))
    return "" if found is None else found.value
