"""What doctor says of a repository's environments on GitHub, and of the role that its jobs assume to
deploy.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from prime_train.aws.account import Account
from prime_train.errors import ExternalError
from prime_train.github.environment_rules import DEPLOY_ROLE, RuleCheck, repository_checks
from prime_train.github.role_trust import ISSUER, wrong_trust
from tests.fakes.aws import aws
from tests.fakes.github import FakeGitHub
from tests.fakes.http import HttpFake, Request, Response

ROOT = Path(__file__).parents[2]
REPOSITORY, ROLE = "acme/models", "arn:aws:iam::123456789012:role/deploys"
GOOD = f"repo:{REPOSITORY}:environment:deploy"
REVIEWED = {
    "id": 1,
    "type": "required_reviewers",
    "reviewers": [{"type": "User", "reviewer": {"login": "ann"}}],
}
BRANCHES = {"protected_branches": False, "custom_branch_policies": True}
PROTECTED = {"protected_branches": True, "custom_branch_policies": False}


def policy(subject: object = GOOD, audience: object = "sts.amazonaws.com", **changes: Any) -> dict[str, Any]:
    """Return a trust policy as docs/aws.md has it, with these values compared by StringEquals."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {f"{ISSUER}:aud": audience, f"{ISSUER}:sub": subject}},
    }
    return {"Version": "2012-10-17", "Statement": [{**statement, **changes}]}


# ------------------------------------------------------------------------------------------------------------
# trust


@pytest.mark.parametrize(
    "subject",
    [
        GOOD,
        [GOOD, "repo:acme@1001/models@2002:environment:deploy"],
        f"repo:{REPOSITORY}:ref:refs/heads/main",
        "repo:Acme/Models:environment:deploy",
    ],
)
def test_a_role_for_one_environment_or_ref_of_the_repository_is_well(subject: object) -> None:
    assert wrong_trust(policy(subject), REPOSITORY) == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (policy("repo:acme/*:environment:deploy"), "has a wildcard"),
        (policy("repo:acme/models:*"), "has a wildcard"),
        (policy([GOOD, "repo:acme/models:ref:refs/heads/?"]), "has a wildcard"),
        (policy("repo:acme/models:pull_request"), "is not that of an environment or a ref"),
        (policy("repo:stranger/models:environment:deploy"), "is that of another repository than acme/models"),
        (policy("repo:acme/models-too:environment:deploy"), "is that of another repository"),
        (policy(audience="https://github.com/acme"), "does not require the audience sts.amazonaws.com"),
        (policy(audience=["sts.amazonaws.com", "x"]), "does not require the audience"),
        (
            policy(Condition={"StringEquals": {f"{ISSUER}:aud": "sts.amazonaws.com"}}),
            "a job of any repository on GitHub is let in",
        ),
        (policy(Condition=None), "a job of any repository"),
        (
            policy(
                Condition={
                    "ForAllValues:StringEquals": {f"{ISSUER}:aud": "sts.amazonaws.com", f"{ISSUER}:sub": GOOD}
                }
            ),
            "any repository",
        ),
        (
            policy(
                Condition={
                    "StringEqualsIfExists": {f"{ISSUER}:aud": "sts.amazonaws.com", f"{ISSUER}:sub": GOOD}
                }
            ),
            "any repository",
        ),
        (
            policy(
                Condition={
                    "StringEquals": {f"{ISSUER}:aud": "sts.amazonaws.com"},
                    "StringLike": {f"{ISSUER}:sub": "repo:acme/*"},
                }
            ),
            "has a wildcard",
        ),
        (policy(Principal="*"), "lets in everybody"),
        (policy(Principal={"AWS": "*"}), "lets in everybody"),
        (
            {"Statement": [{"Effect": "Allow", "NotPrincipal": {"AWS": "x"}, "Action": "*"}]},
            "does not name whom it lets in",
        ),
        ({"Statement": []}, "lets nobody in"),
        ("nonsense", "lets nobody in"),
    ],
)
def test_what_lets_in_others_is_named(given: object, words: str) -> None:
    (first, *_) = [why for why in wrong_trust(given, REPOSITORY) if words in why] or [""]
    assert first, wrong_trust(given, REPOSITORY)


def test_a_pattern_that_has_to_hold_beside_the_exact_subject_lets_in_nobody_else() -> None:
    exact = {f"{ISSUER}:aud": "sts.amazonaws.com", f"{ISSUER}:sub": GOOD}
    assert (
        wrong_trust(
            policy(Condition={"StringEquals": exact, "StringLike": {f"{ISSUER}:sub": "repo:acme/*"}}),
            REPOSITORY,
        )
        == ()
    )


def test_the_policy_of_the_page_is_well() -> None:
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "aws.md").read_text(), re.DOTALL)
    (text,) = (block for block in blocks if "AssumeRoleWithWebIdentity" in block)
    for name, value in (
        ("OWNER_ID", "1"),
        ("REPOSITORY_ID", "2"),
        ("OWNER", "acme"),
        ("REPOSITORY", "models"),
        ("ACCOUNT", "1" * 12),
    ):
        text = text.replace(name, value)
    assert wrong_trust(json.loads(text), REPOSITORY) == ()


def test_a_roles_policy_is_read_from_aws(tmp_path: Path) -> None:
    with aws(tmp_path) as cloud:
        given = policy("repo:acme/*:environment:deploy")
        made = cloud.client("iam").create_role(
            RoleName="deploys", AssumeRolePolicyDocument=json.dumps(given)
        )["Role"]["Arn"]
        assert Account(cloud.env).trust_of(made) == given
        with pytest.raises(ExternalError):
            Account(cloud.env).trust_of(made + "-not-there")


# ------------------------------------------------------------------------------------------------------------
# environments


class Repository(HttpFake):
    """The part of GitHub's API that tells the environments of a repository, and its variables."""

    def __init__(
        self, *environments: Mapping[str, Any], patterns: tuple[str, ...] = ("main",), role: str = ""
    ) -> None:
        super().__init__()
        self.environments, self.patterns, self.role = environments, patterns, role

    def respond(self, request: Request) -> Response:
        path = request.path.removeprefix(f"/repos/{REPOSITORY}/")
        content: object = {"message": "Not Found"}
        if path == "environments":
            content = {"total_count": len(self.environments), "environments": list(self.environments)}
        elif path.endswith("/deployment-branch-policies"):
            content = {
                "total_count": len(self.patterns),
                "branch_policies": [{"id": 1, "name": name} for name in self.patterns],
            }
        elif path == f"actions/variables/{DEPLOY_ROLE}" and self.role:
            content = {"name": DEPLOY_ROLE, "value": self.role}
        else:
            return Response(404, json.dumps(content).encode())
        return Response(200, json.dumps(content).encode())

    def checks(self, trust: object = None, **environment: str) -> list[RuleCheck]:
        given = {"GH_TOKEN": "ghs_x", "GH_REPO": REPOSITORY, "GITHUB_API_URL": self.url, **environment}
        return list(repository_checks(given, (lambda role: trust) if trust is not None else None))


def environment(
    name: str, *rules: Mapping[str, Any], branches: Mapping[str, bool] | None = None
) -> dict[str, Any]:
    return {"id": 1, "name": name, "protection_rules": list(rules), "deployment_branch_policy": branches}


def test_environments_with_their_rules_are_well() -> None:
    good = (
        environment("gpu", REVIEWED),
        environment("gpu-watch", {"type": "branch_policy"}, branches=BRANCHES),
        environment("deploy", REVIEWED, branches=PROTECTED),
        environment("staging"),
    )
    with Repository(*good) as there:
        assert [(one.name, one.wrong) for one in there.checks()] == [
            (f"environment {name} of {REPOSITORY}", "") for name in ("gpu", "gpu-watch", "deploy")
        ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (environment("gpu"), "no reviewers, so that whoever may push a branch can launch"),
        (environment("gpu", {**REVIEWED, "reviewers": []}), "no reviewers"),
        (
            environment("gpu-watch", REVIEWED),
            "no limit to certain branches, so that whoever may push a branch can print its keys",
        ),
        (environment("deploy"), "no reviewers and no limit to certain branches"),
        (environment("deploy", {"type": "wait_timer"}, branches=PROTECTED), "no reviewers, so that"),
    ],
)
def test_an_environment_that_anybody_can_use_is_named(given: Mapping[str, Any], words: str) -> None:
    with Repository(given) as there:
        (one,) = there.checks()
    assert words in one.wrong
    assert not one.is_optional


@pytest.mark.parametrize(
    ("state", "words", "is_optional"),
    [
        ("disabled_inactivity", "after 60 days without activity", False),
        ("disabled_manually", "somebody switched it off", True),
    ],
)
def test_a_schedule_that_is_off_is_named_with_the_command_that_switches_it_on(
    state: str, words: str, is_optional: bool
) -> None:
    with FakeGitHub() as fake:
        fake.add_repo(
            REPOSITORY, files={".github/workflows/watch.yml": "on: {schedule: [{cron: 7 * * * *}]}\n"}
        )
        fake.add_user("ann", repo=REPOSITORY, role="admin")
        given = {"GH_TOKEN": fake.person_token("ann"), "GH_REPO": REPOSITORY, "GITHUB_API_URL": fake.url}
        assert list(repository_checks(given, None)) == []
        fake.switch_off(REPOSITORY, "watch.yml", state)
        (one,) = repository_checks(given, None)
        assert words in one.wrong
        assert one.wrong.endswith("gh workflow enable watch.yml")
        assert one.is_optional is is_optional
        assert fake.violations == []


def test_a_pattern_for_all_branches_is_no_limit() -> None:
    with Repository(environment("gpu-watch", branches=BRANCHES), patterns=("main", "**/*")) as there:
        assert "no limit to certain branches" in there.checks()[0].wrong


def test_the_role_of_the_repositorys_variable_is_looked_at() -> None:
    with Repository(role=ROLE) as there:
        (well,) = there.checks(policy())
        (wrong,) = there.checks(policy("repo:acme/*:environment:deploy"))
        (unknown,) = there.checks()
    assert (well.name, well.wrong) == ("role that deploys", "")
    assert "has a wildcard" in wrong.wrong
    assert ROLE in wrong.wrong
    assert unknown.is_optional


def test_without_a_token_or_a_repository_nothing_is_asked() -> None:
    with Repository(environment("gpu")) as there:
        assert there.checks(GH_REPO="") == there.checks(GH_TOKEN="") == []
        assert there.requests == []
