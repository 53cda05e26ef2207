"""The webhook's function alone on AWS on loopback, with a table and a secret of its own, so that no watcher
changes its runs.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from prime_lambdas.secret import MASTER, POD
from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.stores.dynamo.boto_calls import create_table
from prime_train.stores.dynamo.opening import open_dynamo
from prime_train.stores.dynamo.store import DynamoStore
from tests.fakes.aws import Aws
from tests.fakes.s3_servers import REGION
from tests.lambdas.deployed import code_in
from tests.lambdas.roles import Stack, environment, make_roles
from tests.webhook.attacked import Answer
from tests.webhook.attacks import Sent
from tests.webhook.calls import commit, manifest_of

KEY = "5e" * 16 + "c7" * 16
SECRETS = {
    MASTER: KEY,
    "HF_TOKEN": "hf-secret-value",
    "PRIME_API_KEY": "prime-api-key-of-nobody",
    f"{POD}AWS_ACCESS_KEY_ID": "POD-ACCESS-KEY-ID-1",
    f"{POD}AWS_SECRET_ACCESS_KEY": "pod+secret/access key=of nobody",
}


@dataclass(frozen=True)
class Alone:
    """The function. `url`: its address."""

    cloud: Aws
    name: str
    url: str
    stack: Stack
    dynamodb: Any

    @property
    def store(self) -> DynamoStore:
        return open_dynamo(f"dynamodb://{self.name}?region={REGION}", self.cloud.env)

    def env(self, function: str) -> Mapping[str, str]:
        """Return the environment in which code of this process acts as the function."""
        return environment(self.cloud.url, self.stack, function)

    def webhook(self, clock: float, **env: str) -> Webhook:
        """Return the same function in this process, with a clock that stands still."""
        return Webhook(Settings.of({**self.env("Webhook"), **env}), clock=lambda: clock)

    def items(self) -> list[Any]:
        """Return all items of the table."""
        return sorted(self.dynamodb.scan(TableName=self.name, ConsistentRead=True)["Items"], key=str)

    def logs(self) -> str:
        """Return the function's log of finished calls."""
        pages = (
            self.cloud.client("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=f"/aws/lambda/{self.name}")
        )
        return "\n".join(event["message"] for page in pages for event in page["events"])


def alone(cloud: Aws, folder: Path) -> Alone:
    """Create the function under the folder's name; it exists as long as `cloud` does."""
    name, dynamodb, functions = folder.name, cloud.client("dynamodb"), cloud.client("lambda")
    create_table(dynamodb, name)
    bucket = cloud.client("s3")
    bucket.create_bucket(Bucket=name)
    bucket.put_object(Bucket=name, Key=commit(5).key, Body=manifest_of(commit(5)).model_dump_json().encode())
    secret = cloud.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(SECRETS))["ARN"]
    stack = Stack(name, name, name, secret)
    make_roles(cloud.url, stack)
    own = {
        "PRIME_TRAIN_STORE": f"dynamodb://{name}?region={REGION}",
        "PRIME_TRAIN_BUCKET": f"s3://{name}",
        "PRIME_TRAIN_SECRET": secret,
    }
    functions.create_function(
        FunctionName=name,
        Runtime="python3.12",
        Role=stack.values["WebhookRole.Arn"],
        Handler="prime_lambdas.webhook.handler",
        Timeout=20,
        Code={"ZipFile": code_in(folder).read_bytes()},
        Environment={"Variables": {**own, "AWS_ENDPOINT_URL": cloud.url, "PYTHONDONTWRITEBYTECODE": "1"}},
    )
    address = functions.create_function_url_config(FunctionName=name, AuthType="NONE")["FunctionUrl"]
    return Alone(cloud, name, cloud.address_of(address), stack, dynamodb)


def event(sent: Sent, *, decoded: bool) -> dict[str, Any]:
    """Return the event that a Function URL makes of a request, with its path `decoded` or not."""
    path, _, query = sent.target.partition("?")
    headers: dict[str, str] = {}
    for name, value in sent.headers:
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    http = {
        "method": sent.method,
        "path": path,
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "test",
    }
    return {
        "version": "2.0",
        "rawPath": unquote(path) if decoded else path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {"http": http, "domainName": "x.lambda-url.us-east-1.on.aws", "stage": "$default"},
        "isBase64Encoded": True,
        **({"body": base64.b64encode(sent.body).decode()} if sent.body else {}),
    }


def by_event(webhook: Webhook, reported: Any, method: str = "") -> Answer:
    output = webhook(reported, None)
    assert output["isBase64Encoded"] is False
    return Answer(
        output["statusCode"], output["headers"], b"" if method == "HEAD" else output["body"].encode()
    )
