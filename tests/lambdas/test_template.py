"""The template, checked against CloudFormation's own rules and the assumptions of the code."""

import subprocess
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from prime_train.aws.code import template
from prime_train.buckets.keys import (
    EVIDENCE,
    METRICS_STREAM,
    RUNS,
    attempt_results_key,
    piece_key,
    results_key,
)
from prime_train.stores.dynamo.schema import DEFINITION, EXPIRES
from tests.waiting import HANG_S

KEPT = {"Table", "Bucket"}


NAMES = {
    "AlarmName",
    "BucketName",
    "FunctionName",
    "LogGroupName",
    "Name",
    "RoleName",
    "TableName",
    "TopicName",
}


class _Loader(yaml.SafeLoader):
    """YAML loader that reads `!Sub x` as x."""


def _untagged(loader: _Loader, _: str, node: yaml.Node) -> object:
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_Loader.add_multi_constructor("!", _untagged)


@cache
def resources() -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(template(), _Loader)["Resources"]  # a safe loader with tags
    return found


def test_the_template_follows_cloudformations_rules() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    command = [str(linter), "--regions", "us-east-1", "eu-central-1", "--non-zero-exit-code", "informational"]
    done = subprocess.run(
        command, input=template(), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_template_has_no_anchors_for_cloudformation_takes_none() -> None:
    assert not [
        token for token in yaml.scan(template()) if isinstance(token, yaml.AnchorToken | yaml.AliasToken)
    ]


def test_what_was_trained_outlives_the_stack() -> None:
    policies = {
        name: (one.get("DeletionPolicy"), one.get("UpdateReplacePolicy")) for name, one in resources().items()
    }
    assert {name for name, policy in policies.items() if policy == ("RetainExceptOnCreate", "Retain")} == KEPT


def test_of_all_that_is_in_the_bucket_only_old_evidence_goes_by_itself() -> None:
    rules = resources()["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    by_itself = {
        "Id",
        "Status",
        "AbortIncompleteMultipartUpload",
        "NoncurrentVersionExpiration",
        "ExpiredObjectDeleteMarker",
    }
    goes = [rule for rule in rules if set(rule) - by_itself]
    assert goes == [
        {"Id": "old-evidence", "Status": "Enabled", "Prefix": EVIDENCE, "ExpirationInDays": "EvidenceDays"}
    ]
    assert not RUNS.startswith(EVIDENCE)


def test_what_a_machine_deletes_can_be_brought_back_for_some_days() -> None:
    bucket = resources()["Bucket"]["Properties"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    (rule,) = [
        rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "NoncurrentVersionExpiration" in rule
    ]
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": "VersionDays"}
    statements = [
        one
        for policy in resources()["PodRole"]["Properties"]["Policies"]
        for one in policy["PolicyDocument"]["Statement"]
    ]
    actions = {
        action
        for one in statements
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    assert actions == {
        "s3:ListBucket",
        "s3:AbortMultipartUpload",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:PutObject",
    }


def test_a_table_that_was_restored_may_take_the_place_of_the_stacks_own() -> None:
    either = {"Name": ["HasOtherTable", "OtherTable", "Table"]}
    for function in ("Webhook", "Watcher"):
        statements = [
            one for policy in resources()[function]["Properties"]["Policies"] for one in policy["Statement"]
        ]
        (tables,) = [one["Resource"] for one in statements if "dynamodb:Query" in one["Action"]]
        assert tables[1] == either
    # likewise
    environment = yaml.load(template(), _Loader)["Globals"]["Function"]["Environment"]["Variables"]
    assert environment["PRIME_TRAIN_STORE"][1] == either


def test_the_table_is_as_the_store_wants_it() -> None:
    table = resources()["Table"]["Properties"]
    assert {name: table[name] for name in DEFINITION} == dict(DEFINITION)
    assert table["TimeToLiveSpecification"] == {"AttributeName": EXPIRES, "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_no_function_may_do_everything() -> None:
    for name in ("Webhook", "Watcher"):
        for policy in resources()[name]["Properties"]["Policies"]:
            for statement in policy["Statement"]:
                actions = (
                    statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                )
                assert not [action for action in actions if "*" in action]
                assert statement["Resource"] != "*"


def test_the_dashboard_may_read_results_and_metrics_and_the_watcher_may_write_results() -> None:
    read = [
        results_key("tiny-1"),
        attempt_results_key("tiny-1", 1, "0" * 16),
        piece_key("tiny-1", 1, "0" * 16, METRICS_STREAM, 1),
    ]
    assert [key for key in read if not _may("Webhook", "s3:GetObject", key)] == []
    assert not _may("Webhook", "s3:GetObject", "runs/tiny-1/blobs/weights")
    assert [key for key in read if not _may("Watcher", "s3:GetObject", key)] == []
    assert _may("Watcher", "s3:PutObject", results_key("tiny-1"))


def _may(function: str, action: str, key: str) -> bool:
    """Return whether the function's own policies allow the action on that object of the bucket."""
    statements = [
        one for policy in resources()[function]["Properties"]["Policies"] for one in policy["Statement"]
    ]
    listed = [(_all(one["Action"]), _all(one["Resource"])) for one in statements]
    return any(
        action in actions and any(fnmatchcase(f"${{Bucket.Arn}}/{key}", str(each)) for each in found)
        for actions, found in listed
    )


def _all(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_schedule_never_repeats_a_call() -> None:
    watcher = resources()["Watcher"]["Properties"]
    each_minute = watcher["Events"]["EachMinute"]["Properties"]
    assert each_minute["ScheduleExpression"] == "rate(1 minute)"
    assert each_minute["RetryPolicy"]["MaximumRetryAttempts"] == 0
    assert watcher["EventInvokeConfig"]["MaximumRetryAttempts"] == 0


def test_two_stacks_fit_into_a_region() -> None:
    """Resources without a name get one from their stack, except schedules, which SAM names alike
    everywhere.
    """
    own = [
        resources()["Watcher"]["Properties"]["FunctionName"],
        resources()["Watcher"]["Properties"]["Events"]["EachMinute"]["Properties"]["Name"],
    ]
    assert own == ["${AWS::StackName}-watcher"] * 2
    for name, resource in resources().items():
        fixed = {
            key: value
            for key, value in resource["Properties"].items()
            if key in NAMES and "${AWS::StackName}" not in value
        }
        assert not fixed, name


def test_an_alarm_rings_where_nobody_watches() -> None:
    alarm = resources()["NobodyWatches"]["Properties"]
    assert (alarm["MetricName"], alarm["Period"], alarm["TreatMissingData"]) == (
        "Invocations",
        300,
        "breaching",
    )
