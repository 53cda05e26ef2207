"""What the judge in front of the AWS of the tests refuses, checked with boto3: as AWS does, and in the form
of each service.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.fakes.iam.ledger import refused_to_functions, used
from tests.fakes.iam.policies import Right, Wanted, granted, parse
from tests.fakes.s3_servers import REGION, S3Server

ROLE = "judged-PodRole"
ALLOWED = [
    {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::judged/open/*"},
    {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::judged/*"},
    {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::judged/*/closed-[x]"},
    {
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": "arn:aws:s3:::judged",
        "Condition": {"StringLike": {"s3:prefix": ["open/seen/*"]}},
    },
]


@pytest.fixture(scope="module", name="clients")
def _clients(ministack: S3Server) -> Callable[[str], Any]:
    """Return a function that makes a client with keys of the role."""
    ministack.create_bucket("judged")
    account = boto3.session.Session("test", "test", region_name=REGION)
    iam, sts = (account.client(name, endpoint_url=ministack.url) for name in ("iam", "sts"))
    trust = {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::000000000000:role/nobody"},
                "Action": "sts:AssumeRole",
            }
        ]
    }
    arn = iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName=ROLE, PolicyName="some", PolicyDocument=json.dumps({"Statement": ALLOWED}))
    lent = sts.assume_role(RoleArn=arn, RoleSessionName="some")["Credentials"]
    session = boto3.session.Session(
        lent["AccessKeyId"], lent["SecretAccessKey"], lent["SessionToken"], region_name=REGION
    )
    made = {
        name: session.client(name, endpoint_url=ministack.url)
        for name in ("s3", "dynamodb", "secretsmanager", "lambda", "sts")
    }
    return made.__getitem__


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as refused:
        call()
    response: Any = refused.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


CALLS: Mapping[str, tuple[Callable[[Any], object], tuple[int, str]]] = {
    "s3": (lambda client: client.delete_object(Bucket="judged", Key="open/a"), (403, "AccessDenied")),
    "dynamodb": (
        lambda client: client.get_item(TableName="one", Key={"PK": {"S": "a"}}),
        (400, "AccessDeniedException"),
    ),
    "secretsmanager": (
        lambda client: client.get_secret_value(SecretId="one"),
        (400, "AccessDeniedException"),
    ),
    "lambda": (lambda client: client.invoke(FunctionName="one"), (403, "AccessDeniedException")),
    "sts": (
        lambda client: client.assume_role(
            RoleArn=f"arn:aws:iam::000000000000:role/{ROLE}", RoleSessionName="again"
        ),
        (403, "AccessDenied"),
    ),
}


@pytest.mark.parametrize("service", CALLS)
def test_what_nothing_allows_is_refused_in_the_form_of_the_service(
    service: str, clients: Callable[[str], Any]
) -> None:
    call, expected = CALLS[service]
    assert refusal(lambda: call(clients(service))) == expected


def test_a_role_may_what_its_policy_allows_and_that_is_noted(
    ministack: S3Server, clients: Callable[[str], Any]
) -> None:
    client = clients("s3")
    client.put_object(Bucket="judged", Key="open/seen/there", Body=b"1")
    assert client.get_object(Bucket="judged", Key="open/seen/there")["Body"].read() == b"1"
    assert client.list_objects_v2(Bucket="judged", Prefix="open/seen/")["KeyCount"] == 1
    assert refusal(lambda: client.list_objects_v2(Bucket="judged", Prefix="open/")) == (403, "AccessDenied")
    assert refusal(lambda: client.list_objects_v2(Bucket="judged")) == (403, "AccessDenied")
    assert refusal(lambda: client.put_object(Bucket="judged", Key="a/b/closed-[x]", Body=b"1")) == (
        403,
        "AccessDenied",
    )
    client.put_object(Bucket="judged", Key="a/b/closed-x", Body=b"1")
    assert {right for role, right in used(ministack) if role == ROLE} == {
        Right("s3:PutObject", "arn:aws:s3:::judged/*"),
        Right("s3:GetObject", "arn:aws:s3:::judged/open/*"),
        Right("s3:ListBucket", "arn:aws:s3:::judged"),
    }
    assert not [one for one in refused_to_functions(ministack) if one.startswith(ROLE)], (
        "lent keys are no function's"
    )


def test_who_may_not_list_does_not_hear_that_an_object_is_missing(clients: Callable[[str], Any]) -> None:
    client = clients("s3")
    assert refusal(lambda: client.get_object(Bucket="judged", Key="open/seen/missing")) == (404, "NoSuchKey")
    assert refusal(lambda: client.get_object(Bucket="judged", Key="open/hidden/missing")) == (
        403,
        "AccessDenied",
    )
    assert refusal(lambda: client.head_object(Bucket="judged", Key="open/hidden/missing")) == (403, "403")


def test_a_role_that_nobody_has_made_may_nothing(ministack: S3Server) -> None:
    sts = boto3.session.Session("test", "test", region_name=REGION).client("sts", endpoint_url=ministack.url)
    lent = sts.assume_role(
        RoleArn="arn:aws:iam::000000000000:role/never-made-PodRole", RoleSessionName="some"
    )["Credentials"]
    keys = {"aws_access_key_id": lent["AccessKeyId"], "aws_secret_access_key": lent["SecretAccessKey"]}
    client = boto3.client(
        "s3", endpoint_url=ministack.url, region_name=REGION, aws_session_token=lent["SessionToken"], **keys
    )
    assert refusal(lambda: client.list_objects_v2(Bucket="judged")) == (403, "AccessDenied")


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "NotAction": "s3:GetObject", "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": "*",
            "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
        },
    ],
)
def test_a_policy_that_is_not_understood_lets_no_test_pass(statement: Mapping[str, Any]) -> None:
    with pytest.raises(AssertionError, match="not understood"):
        parse({"Statement": [statement]})


def test_names_of_actions_are_the_same_in_any_case_and_resources_are_not() -> None:
    statements = parse(
        {"Statement": {"Effect": "Allow", "Action": "S3:getobject", "Resource": "arn:aws:s3:::a/B?"}}
    )
    assert granted(statements, Wanted("s3:GetObject", "arn:aws:s3:::a/Bc")) is not None
    assert granted(statements, Wanted("s3:GetObject", "arn:aws:s3:::a/bc")) is None
