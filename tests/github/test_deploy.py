"""The workflow that deploys: run by act with AWS on loopback, and its role's trust policy as documented."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from prime_train.aws.account import Account
from prime_train.aws.code import code
from prime_train.aws.package import Target
from prime_train.aws.plan import STACK
from tests.fakes.aws import Aws, aws
from tests.github import scratch
from tests.github.act import Act, Step, needs_act
from tests.github.files import ROOT, parsed
from tests.lambdas.deployed import code_in

WORKFLOW = ROOT / ".github" / "workflows" / "deploy.yml"
ISSUER = "token.actions.githubusercontent.com"
ACCOUNT, OWNER, REPOSITORY = "123456789012", ("acme", "1001"), ("models", "2002")
TODAY = f"repo:{OWNER[0]}/{REPOSITORY[0]}"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDh3cgZ0Hx8n0kM5oTFNEBd9sS0Kk4wbq3o2p2kZqjJ6"
MACHINES = f"machines:\n  - {{name: box, address: 8.8.8.8, disk_gib: 1, host_keys: [{HOST_KEY}]}}\n"
RENEWED = f"repo:{OWNER[0]}@{OWNER[1]}/{REPOSITORY[0]}@{REPOSITORY[1]}"


# ------------------------------------------------------------------------------------------------------------
# trust


def policy(words: str) -> dict[str, Any]:
    """Return the only statement of the policy with these words in it, filled in as by a reader."""
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "aws.md").read_text(), re.DOTALL)
    (text,) = (block for block in blocks if words in block)
    # The longer names first.
    names = {
        "OWNER_ID": OWNER[1],
        "REPOSITORY_ID": REPOSITORY[1],
        "OWNER": OWNER[0],
        "REPOSITORY": REPOSITORY[0],
        "ACCOUNT": ACCOUNT,
    }
    (statement,) = json.loads(re.sub("|".join(names), lambda match: names[match[0]], text))["Statement"]
    assert isinstance(statement, dict)
    return statement


def trust() -> dict[str, Any]:
    return policy("AssumeRoleWithWebIdentity")


def lets_in(subject: str, audience: str = "sts.amazonaws.com") -> bool:
    """Return whether a job with this token may assume the role: every condition has to hold, with one of its
    values.
    """
    (operator, conditions), *others = trust()["Condition"].items()
    assert (operator, others) == ("StringEquals", [])
    token = {f"{ISSUER}:sub": subject, f"{ISSUER}:aud": audience}
    return all(
        token[key] in ([wanted] if isinstance(wanted, str) else wanted) for key, wanted in conditions.items()
    )


@pytest.mark.parametrize("repository", [TODAY, RENEWED])
def test_the_role_is_for_the_environment_that_the_workflow_names(repository: str) -> None:
    (job,) = parsed(WORKFLOW)["jobs"].values()
    assert lets_in(f"{repository}:environment:{job['environment']['name']}")
    assert job["permissions"]["id-token"] == "write"


@pytest.mark.parametrize(
    "subject",
    [
        f"{TODAY}:environment:gpu",
        f"{TODAY}:environment:deploy-too",
        f"{TODAY}:ref:refs/heads/main",
        f"{RENEWED}:pull_request",
        "repo:acme@1001/models@2003:environment:deploy",
        "repo:acme@1002/models@2002:environment:deploy",
        "repo:stranger/models:environment:deploy",
        "repo:acme/models-too:environment:deploy",
    ],
)
def test_the_role_is_for_nobody_else(subject: str) -> None:
    assert not lets_in(subject)


def test_the_role_is_taken_with_a_token_for_aws_alone() -> None:
    statement = trust()
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Principal"] == {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}"}
    assert not lets_in(f"{TODAY}:environment:deploy", audience="https://github.com/acme")


def test_the_role_may_make_the_roles_of_the_stack_and_no_others() -> None:
    statement = policy("iam:CreateRole")
    assert statement["Resource"] == f"arn:aws:iam::{ACCOUNT}:role/{STACK}-*"
    assert {"iam:CreateRole", "iam:DeleteRole", "iam:PassRole", "iam:PutRolePolicy"} <= set(
        statement["Action"]
    )


# ------------------------------------------------------------------------------------------------------------
# run


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Aws]:
    """Return an AWS on loopback that has the code that would be deployed, as if it had been built: fetching
    its dependencies takes a minute.
    """
    with aws(tmp_path / "aws") as it:
        made = code(Target(), None, print)
        Account(it.env).bring(made.better or made.name, code_in(tmp_path).read_bytes())
        yield it


def deployed(act: Act, cloud: Aws, repository: Path, installed: Path, inputs: Mapping[str, str]) -> Step:
    variables = {
        "PRIME_TRAIN_DEPLOY_ROLE": f"arn:aws:iam::{ACCOUNT}:role/deploys",
        "AWS_REGION": cloud.env["AWS_REGION"],
    }
    secrets = {
        "PRIME_TRAIN_CREDENTIALS": json.dumps(
            {"PRIME_API_KEY": "pk-secret-value", "PRIME_TRAIN_SSH_HOSTS": MACHINES}
        )
    }
    env = {**cloud.env, scratch.WARM: str(installed)}
    ran = act.run(
        repository,
        WORKFLOW.name,
        "workflow_dispatch",
        {"inputs": dict(inputs)},
        variables=variables,
        secrets=secrets,
        env=env,
    )
    assert ran.jobs == {"deploy": "success"}, ran.reported
    assert "pk-secret-value" not in ran.reported
    assert "8.8.8.8" not in ran.reported
    (step,) = (step for step in ran.steps if "$" not in step.place and step.text.startswith("account "))
    return step


@needs_act
@pytest.mark.exhaustive
def test_it_deploys_and_shows_the_address_and_the_second_time_that_nothing_changes(
    act: Act, cloud: Aws, installed: Path, tmp_path: Path
) -> None:
    scratch.write_workflows(tmp_path / "models")
    repository = scratch.repository(tmp_path / "models", {})
    first = deployed(act, cloud, repository, installed, {"stack": "training", "dry-run": "false"})
    (stack,) = cloud.client("cloudformation").describe_stacks(StackName="training")["Stacks"]
    url = next(one["OutputValue"] for one in stack["Outputs"] if one["OutputKey"] == "Url")
    assert f"PRIME_TRAIN_STORE={url.rstrip('/')}\n" in first.summary
    assert "the secret has new values of PRIME_API_KEY, PRIME_TRAIN_SSH_HOSTS" in first.summary
    again = deployed(act, cloud, repository, installed, {"stack": "training", "dry-run": "true"})
    assert "nothing changes" in again.summary


@needs_act
def test_without_a_role_it_does_not_begin(act: Act, tmp_path: Path) -> None:
    scratch.write_workflows(tmp_path / "models")
    repository = scratch.repository(tmp_path / "models", {})
    assert act.run(repository, WORKFLOW.name, "workflow_dispatch", {"inputs": {}}).jobs == {}
