"""The template's roles on an AWS on loopback without CloudFormation, so that code in the tests' own process
can act as a function.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
import yaml

from prime_train.aws.code import template
from tests.fakes.iam.ledger import Server, refused_to_functions
from tests.fakes.iam.requests import ACCOUNT
from tests.fakes.s3_servers import REGION

FUNCTIONS = ("Webhook", "Watcher")


@dataclass(frozen=True)
class Stack:
    """The names that a stack's resources have. `secret`: an ARN."""

    name: str
    table: str
    bucket: str
    secret: str

    def role(self, function: str) -> str:
        """Return the name of the role of a function, or of "Pod"."""
        return f"{self.name}-{function}Role"

    @property
    def values(self) -> Mapping[str, str]:
        """Return what references to resources and parameters stand for."""
        roles = {
            f"{one}Role.Arn": f"arn:aws:iam::{ACCOUNT}:role/{self.role(one)}" for one in (*FUNCTIONS, "Pod")
        }
        names = {
            "Table": self.table,
            "Bucket": self.bucket,
            "Secret": self.secret,
            "WebhookRole": self.role("Webhook"),
        }
        account = {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "AWS::StackName": self.name,
        }
        return {**roles, **names, **account, "Bucket.Arn": f"arn:aws:s3:::{self.bucket}"}


def statements(stack: Stack, function: str) -> list[Any]:
    """Return the statements of a function, or of "Pod", with the stack's names."""
    resources = _resources()
    if function == "Pod":
        found = [one["PolicyDocument"] for one in resources["PodRole"]["Properties"]["Policies"]]
    else:
        own = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::IAM::Policy"]
        more = [one["PolicyDocument"] for one in own if {"!Ref": f"{function}Role"} in one["Roles"]]
        found = [*resources[function]["Properties"]["Policies"], *more]
    return [_resolved(statement, stack.values) for document in found for statement in document["Statement"]]


def make_roles(url: str, stack: Stack) -> None:
    """Create the roles of the stack, with what the template allows them."""
    iam = _client(url, "iam")
    trust = _resolved(_resources()["PodRole"]["Properties"]["AssumeRolePolicyDocument"], stack.values)
    for one in (*FUNCTIONS, "Pod"):
        name = stack.role(one)
        iam.create_role(
            RoleName=name, AssumeRolePolicyDocument=json.dumps(trust if one == "Pod" else {"Statement": []})
        )
        document = {"Version": "2012-10-17", "Statement": statements(stack, one)}
        iam.put_role_policy(RoleName=name, PolicyName="of-the-template", PolicyDocument=json.dumps(document))


def keys(url: str, stack: Stack, function: str) -> dict[str, str]:
    """Return the environment with which a process acts as the function."""
    role = stack.values[f"{function}Role.Arn"]
    lent = _client(url, "sts").assume_role(RoleArn=role, RoleSessionName=function.lower())["Credentials"]
    names = {
        "AWS_ACCESS_KEY_ID": "AccessKeyId",
        "AWS_SECRET_ACCESS_KEY": "SecretAccessKey",
        "AWS_SESSION_TOKEN": "SessionToken",
    }
    return {name: str(lent[field]) for name, field in names.items()}


def environment(url: str, stack: Stack, function: str) -> dict[str, str]:
    """Return the environment of a function of the stack, which acts by the function's role."""
    places = {
        "STORE": f"dynamodb://{stack.table}?region={REGION}",
        "BUCKET": f"s3://{stack.bucket}",
        "SECRET": stack.secret,
    }
    own = {"POD_ROLE": stack.values["PodRole.Arn"]} if function == "Webhook" else {}
    given = {f"PRIME_TRAIN_{name}": value for name, value in {**places, **own}.items()}
    return {**given, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": url, **keys(url, stack, function)}


@contextmanager
def acting(server: Server, stack: Stack, function: str) -> Iterator[dict[str, str]]:
    """Make the stack's roles, and yield the environment in which this process acts as the function. Fails at
    the end if a role of the stack was refused something.
    """
    make_roles(server.url, stack)
    yield environment(server.url, stack, function)
    refused = [one for one in refused_to_functions(server) if one.startswith(f"{stack.name}-")]
    assert not refused, "the template does not allow what the functions do"


def _client(url: str, service: str) -> Any:
    return boto3.session.Session("test", "test", region_name=REGION).client(service, endpoint_url=url)


class _Loader(yaml.SafeLoader):
    """YAML loader that reads `!Sub x` as {"!Sub": x}."""


def _tagged(loader: _Loader, suffix: str, node: yaml.Node) -> object:
    value: object = loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    return {f"!{suffix}": value}


_Loader.add_multi_constructor("!", _tagged)


@cache
def _resources() -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(template(), _Loader)["Resources"]  # a safe loader with tags
    return found


def _resolved(value: Any, values: Mapping[str, str]) -> Any:
    """Return the value with CloudFormation's functions replaced by what they yield. Its conditions hold for
    nothing here.
    """
    match value:
        case {"!Ref": name} | {"!GetAtt": name}:
            return values[name]
        case {"!If": [_, _, otherwise]}:
            return _resolved(otherwise, values)
        case {"!Sub": [text, more]}:
            return _substituted(
                text, {**values, **{name: _resolved(one, values) for name, one in more.items()}}
            )
        case {"!Sub": text}:
            return _substituted(text, values)
        case dict():
            return {name: _resolved(one, values) for name, one in value.items()}
        case list():
            return [_resolved(one, values) for one in value]
        case _:
            return value


def _substituted(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    assert "${" not in text, f"{text}: a name is not known here"
    return text
