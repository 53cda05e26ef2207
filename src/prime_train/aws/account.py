"""An AWS account in one region: its number, the bucket for code, the secret, and the limit of concurrent
functions.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.aws.error_conversion import translated_errors
from prime_train.errors import PermanentError

CONFIG = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 4})
ANSWER_BYTES_MAX = 64 * 1024
NOT_THERE = frozenset({"404", "NoSuchBucket", "NotFound"})


class Account:
    """An AWS account and region. `environment` holds the keys or names the profile, as AWS's own tools read
    it. Raises PermanentError if no region is named.
    """

    def __init__(self, environment: Mapping[str, str], region: str = "") -> None:
        with translated_errors("AWS's settings"):
            keys = [
                environment.get(name)
                for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            ]
            profile = environment.get("AWS_PROFILE")
            session = (
                boto3.session.Session(*keys)
                if keys[0] and keys[1]
                else boto3.session.Session(profile_name=profile)
            )
        named = (
            region
            or environment.get("AWS_REGION")
            or environment.get("AWS_DEFAULT_REGION")
            or session.region_name
        )
        if not named:
            fix = Advice(
                "set one, such as ", Option(SettingAdvice.REGION, "eu-central-1"), ", or set AWS_REGION"
            )
            raise PermanentError("no AWS region is set", fix=fix)
        self.region: str = named
        self._session, self._endpoint = session, environment.get("AWS_ENDPOINT_URL")

    def client(self, service: str) -> Any:
        with translated_errors(f"AWS's {service}"):
            return self._session.client(
                service, region_name=self.region, endpoint_url=self._endpoint, config=CONFIG
            )

    @cached_property
    def number(self) -> str:
        with translated_errors("the identity of these credentials"):
            return str(self.client("sts").get_caller_identity()["Account"])

    @property
    def code_bucket(self) -> str:
        return f"prime-train-code-{self.number}-{self.region}"

    def has(self, key: str) -> bool:
        """Return whether this code was uploaded before. The bucket must belong to this account, because
        another account could have created a bucket of that name.
        """
        try:
            with translated_errors(f"bucket {self.code_bucket}"):
                found = self.client("s3").list_objects_v2(
                    Bucket=self.code_bucket, Prefix=key, ExpectedBucketOwner=self.number
                )
                return "Contents" in found
        except PermanentError as error:
            if _is_missing(error.__cause__):
                return False
            raise

    def bring(self, key: str, code: bytes) -> None:
        """Upload the code to `code_bucket`, which is created if it is missing."""
        s3 = self.client("s3")
        with translated_errors(f"bucket {self.code_bucket}"):
            self._make_bucket(s3)
            s3.put_object(Bucket=self.code_bucket, Key=key, Body=code, ExpectedBucketOwner=self.number)

    def _make_bucket(self, s3: Any) -> None:
        try:
            s3.head_bucket(Bucket=self.code_bucket, ExpectedBucketOwner=self.number)
            return
        except ClientError as error:
            if not _is_missing(error):
                raise
        where = (
            {}
            if self.region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
        )
        s3.create_bucket(Bucket=self.code_bucket, **where)
        closed = dict.fromkeys(
            ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
        )
        s3.put_public_access_block(Bucket=self.code_bucket, PublicAccessBlockConfiguration=closed)

    def keeps_versions(self, bucket: str) -> bool:
        """Return whether the bucket keeps old versions of its objects. It must belong to this account."""
        with translated_errors(f"bucket {bucket}"):
            found = self.client("s3").get_bucket_versioning(Bucket=bucket, ExpectedBucketOwner=self.number)
        return bool(found.get("Status") == "Enabled")

    def trust_of(self, role: str) -> object:
        """Return the trust policy of a role of this account by its ARN, as parsed from JSON."""
        with translated_errors(f"the role {role}"):
            return self.client("iam").get_role(RoleName=role.rpartition("/")[2])["Role"][
                "AssumeRolePolicyDocument"
            ]

    def functions_left(self) -> int:
        """Return the number of concurrent functions that the account can still reserve."""
        with translated_errors("the account's limits"):
            limits = self.client("lambda").get_account_settings()["AccountLimit"]
        return int(limits["UnreservedConcurrentExecutions"])

    def secret(self, name: str) -> dict[str, object]:
        """Return the names and values in the secret; the functions accept it only if all values are text.
        Raises PermanentError if it is not a JSON object; its content is never repeated.
        """
        with translated_errors("the secret"):
            text = self.client("secretsmanager").get_secret_value(SecretId=name).get("SecretString", "")
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise PermanentError(f"the secret {name} is not a JSON object")
        return values

    def change_secret(self, name: str, change: Callable[[dict[str, object]], dict[str, object]]) -> list[str]:
        """Apply `change` to the content of the secret, and write the result if it differs. Return the names
        whose values changed.
        """
        before = self.secret(name)
        after = change(dict(before))
        if after != before:
            with translated_errors("the secret"):
                self.client("secretsmanager").put_secret_value(SecretId=name, SecretString=json.dumps(after))
        return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))

    def call(self, function: str, event: Mapping[str, object]) -> dict[str, str]:
        """Invoke one of the stack's functions by its name, and return its result. Raises PermanentError if it
        ended with an error.
        """
        with translated_errors(f"function {function}"):
            response = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
            text = response["Payload"].read(ANSWER_BYTES_MAX)
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if "FunctionError" in response or not isinstance(values, dict):
            raise PermanentError(f"function {function} ended with an error; see its log")
        return {str(name): str(value) for name, value in values.items()}

    def alarms(self, names: Sequence[str]) -> list[str]:
        """Return those of `names` whose alarms are active. At most 100 names can be given."""
        if not names:  # AWS would take an empty list for all alarms
            return []
        with translated_errors("the alarms"):
            response = self.client("cloudwatch").describe_alarms(AlarmNames=names, StateValue="ALARM")
        return [alarm["AlarmName"] for alarm in response.get("MetricAlarms", [])]


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return the values of a secret that are text."""
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _is_missing(error: BaseException | None) -> bool:
    return isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") in NOT_THERE
