"""Stacks that hang, belong to another owner, are refused, or abandoned by the user: what is reported, and
that nothing is left behind.
"""

import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from prime_train.aws import code as aws_code
from prime_train.aws.account import Account
from prime_train.aws.package import PYTHONS, Target
from prime_train.aws.stack import Stack
from prime_train.errors import PermanentError, TemporaryError
from prime_train.text.explained_errors import explained
from tests.cli.shell import PROGRAM
from tests.fakes.cloudformation import NAME, NEW, FakeCloudFormation
from tests.waiting import HANG_S

REGION = "eu-central-1"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
FAR = (
    "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: cloudformation:CreateChangeSet "
    "on resource: " + "x" * 200
)
WAITS = ("CREATE_IN_PROGRESS", "")
FAILS = [
    ("UPDATE_IN_PROGRESS", [("Table", "UPDATE_COMPLETE", "")]),
    (
        "UPDATE_ROLLBACK_IN_PROGRESS",
        [
            ("Webhook", "UPDATE_FAILED", "no such runtime"),
            ("Watcher", "UPDATE_FAILED", "Resource update cancelled"),
        ],
    ),
    ("UPDATE_ROLLBACK_COMPLETE", [("Table", "UPDATE_COMPLETE", "")]),
]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[FakeCloudFormation, Any]]:
    with FakeCloudFormation() as fake:
        yield (
            fake,
            boto3.session.Session("key", "secret", region_name=REGION).client(
                "cloudformation", endpoint_url=fake.url
            ),
        )


@pytest.fixture
def aws(running: tuple[FakeCloudFormation, Any]) -> FakeCloudFormation:
    fake, _ = running
    fake.renew()
    return fake


@pytest.fixture
def stack(running: tuple[FakeCloudFormation, Any]) -> Stack:
    return Stack(running[1], NAME, look_s=0.0)


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ("ROLLBACK_COMPLETE", "remove it with prime-train destroy"),
        ("ROLLBACK_FAILED", "remove it with prime-train destroy"),
        ("DELETE_FAILED", "retry with prime-train destroy"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback"),
    ],
)
def test_a_stack_that_is_stuck_is_left_as_it_is_and_a_way_out_is_reported(
    aws: FakeCloudFormation, stack: Stack, state: str, remedy: str
) -> None:
    aws.state = state
    with pytest.raises(PermanentError, match=state) as refused:
        stack.plan("{}", {})
    assert re.search(f"{state}\n  fix: .*{remedy}", explained(refused.value)[1])
    assert set(aws.actions) == {"DescribeStacks"}


def test_a_stack_that_somebody_changes_now_is_waited_for(aws: FakeCloudFormation, stack: Stack) -> None:
    aws.state = "UPDATE_IN_PROGRESS"
    with pytest.raises(TemporaryError, match="a change is in progress"):
        stack.plan("{}", {})


def test_a_change_that_was_put_back_can_be_tried_again(aws: FakeCloudFormation, stack: Stack) -> None:
    aws.state = "UPDATE_ROLLBACK_COMPLETE"
    assert stack.plan("{}", {}) is not None


def test_somebody_elses_stack_is_neither_changed_nor_deleted(aws: FakeCloudFormation, stack: Stack) -> None:
    aws.state, aws.tags = "CREATE_COMPLETE", {"team": "billing"}
    for touch in (stack.state, stack.outputs, lambda: stack.plan("{}", {}), lambda: stack.delete(print)):
        with pytest.raises(PermanentError, match="was not created by prime-train"):
            touch()
    assert set(aws.actions) == {"DescribeStacks"}


def test_an_older_stack_keeps_its_parameters_and_takes_what_is_new_as_the_template_has_it(
    aws: FakeCloudFormation, stack: Stack
) -> None:
    aws.state, aws.parameters = (
        "CREATE_COMPLETE",
        {"PublicUrl": "https://train.example.com", "CodeKey": "of old"},
    )
    stack.plan("{}", {"PublicUrl": None, "EvidenceDays": None, "AlarmEmail": "ann@example.com"})
    (requested,) = (requested for requested in aws.requested if requested["Action"] == "CreateChangeSet")
    given = {
        name.rpartition("Parameters.member.")[2]: value
        for name, value in requested.items()
        if "Parameters.member." in name
    }
    assert given == {
        "1.ParameterKey": "AlarmEmail",
        "1.ParameterValue": "ann@example.com",
        "2.ParameterKey": "PublicUrl",
        "2.UsePreviousValue": "true",
    }


def test_a_failed_change_is_reported_by_what_failed_first(aws: FakeCloudFormation, stack: Stack) -> None:
    aws.state = "CREATE_COMPLETE"
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.course, output = list(FAILS), list[str]()
    with pytest.raises(PermanentError, match="UPDATE_ROLLBACK_COMPLETE: Webhook: no such runtime") as failed:
        stack.carry_out(plan, output.append)
    assert re.search(r"no such runtime\n  fix: .*works as before", explained(failed.value)[1])
    assert [line.partition(" s  ")[2] for line in output] == [
        "Table changed",
        "Webhook failed: no such runtime",
        "Table changed",
    ]


def test_a_change_that_has_not_begun_yet_is_not_taken_for_one_that_is_done(
    aws: FakeCloudFormation, stack: Stack
) -> None:
    aws.state = "CREATE_COMPLETE"
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.course, output = (
        [
            ("CREATE_COMPLETE", []),
            ("UPDATE_IN_PROGRESS", []),
            ("UPDATE_COMPLETE", [("Table", "UPDATE_COMPLETE", "")]),
        ],
        list[str](),
    )
    stack.carry_out(plan, output.append)
    assert aws.state == "UPDATE_COMPLETE"
    assert len(output) == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AccessDenied", "cloudformation:CreateChangeSet.*\n  fix: docs/aws.md"),
        ("ExpiredToken", "aws sso login"),
    ],
)
def test_what_aws_refuses_is_reported_with_a_remedy(
    aws: FakeCloudFormation, stack: Stack, code: str, words: str
) -> None:
    aws.refusals["CreateChangeSet"] = (code, FAR)
    with pytest.raises(PermanentError, match=words):
        stack.plan("{}", {})


def test_a_plan_that_fails_or_is_not_wanted_leaves_nothing(aws: FakeCloudFormation, stack: Stack) -> None:
    aws.change_set_statuses = [WAITS, ("FAILED", "Template error")]
    with pytest.raises(PermanentError, match="Template error"):
        stack.plan("{}", {})
    assert (aws.state, aws.change_sets) == ("", [])
    aws.state, aws.change_set_statuses = (
        "CREATE_COMPLETE",
        [("FAILED", "The submitted information didn't contain changes.")],
    )
    assert stack.plan("{}", {}) is None
    assert (aws.state, aws.change_sets) == ("CREATE_COMPLETE", [])


def test_a_plan_that_is_dropped_does_not_take_anothers_stack_with_it(
    aws: FakeCloudFormation, stack: Stack
) -> None:
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.change_sets.append("of somebody else")
    stack.drop(plan)
    assert (aws.state, aws.change_sets) == (NEW, ["of somebody else"])
    late = stack.plan("{}", {})
    assert late is not None
    aws.state = "CREATE_IN_PROGRESS"  # by the other plan
    stack.drop(late)
    assert (aws.state, aws.change_sets) == ("CREATE_IN_PROGRESS", ["of somebody else"])


def test_a_plan_that_cannot_be_carried_out_leaves_nothing(aws: FakeCloudFormation, stack: Stack) -> None:
    aws.state, aws.refusals["ExecuteChangeSet"] = "CREATE_COMPLETE", ("AccessDenied", FAR)
    plan = stack.plan("{}", {})
    assert plan is not None
    with pytest.raises(PermanentError, match="AccessDenied"):
        stack.carry_out(plan, print)
    assert aws.change_sets == []


BEGINS = {
    "": [(NEW, []), ("CREATE_IN_PROGRESS", [("Table", "CREATE_COMPLETE", "")]), ("CREATE_COMPLETE", [])],
    "CREATE_COMPLETE": [("UPDATE_IN_PROGRESS", [("Table", "UPDATE_COMPLETE", "")]), ("UPDATE_COMPLETE", [])],
}
TIDIES = {"DeleteStack", "DeleteChangeSet"}


@pytest.fixture
def unasked_again(running: tuple[FakeCloudFormation, Any]) -> Stack:
    """Return the stack with a client that repeats no request."""
    session = boto3.session.Session("key", "secret", region_name=REGION)
    once = Config(retries={"total_max_attempts": 1})
    return Stack(session.client("cloudformation", endpoint_url=running[0].url, config=once), NAME, look_s=0.0)


@pytest.mark.parametrize("asks", ["stack", "unasked_again"])
@pytest.mark.parametrize("state", BEGINS)
def test_a_change_whose_first_answer_was_lost_is_waited_for(
    aws: FakeCloudFormation, request: pytest.FixtureRequest, state: str, asks: str
) -> None:
    stack: Stack = request.getfixturevalue(asks)
    aws.state = state
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.course, aws.lost_responses = list(BEGINS[state]), {"ExecuteChangeSet": 1}
    stack.carry_out(plan, print)
    assert (aws.state, TIDIES & set(aws.actions)) == (BEGINS[state][-1][0], set())
    begun = [requested for requested in aws.requested if requested["Action"] == "ExecuteChangeSet"]
    assert (len(begun), {requested["ClientRequestToken"] for requested in begun}) == (
        2 if asks == "stack" else 1,
        {plan.name},
    )


def test_a_stack_of_which_nobody_knows_whether_it_has_begun_stays(
    aws: FakeCloudFormation, unasked_again: Stack
) -> None:
    plan = unasked_again.plan("{}", {})
    assert plan is not None
    aws.course, aws.lost_responses = [(NEW, [])], {"ExecuteChangeSet": 1}
    aws.refusals["DescribeChangeSet"] = ("Throttling", "Rate exceeded")
    with pytest.raises(TemporaryError, match="Rate exceeded"):
        unasked_again.carry_out(plan, print)
    assert (aws.state, TIDIES & set(aws.actions)) == (NEW, set())


def test_a_stack_is_given_up_only_once_its_plan_cannot_begin_any_more(
    aws: FakeCloudFormation, stack: Stack
) -> None:
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.refusals["ExecuteChangeSet"] = ("AccessDenied", FAR)
    with pytest.raises(PermanentError, match="AccessDenied"):
        stack.carry_out(plan, print)
    assert aws.state == ""
    assert [action for action in aws.actions if action in TIDIES] == ["DeleteChangeSet", "DeleteStack"]


def test_a_plan_that_is_carried_out_cannot_be_dropped(aws: FakeCloudFormation, stack: Stack) -> None:
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.course = list(BEGINS[""])
    stack.carry_out(plan, print)
    with pytest.raises(PermanentError, match="EXECUTE_IN_PROGRESS"):
        stack.drop(plan)
    assert "DeleteStack" not in aws.actions


def test_a_stack_goes_with_a_plan_that_is_not_worked_out_yet(aws: FakeCloudFormation, stack: Stack) -> None:
    plan = stack.plan("{}", {})
    assert plan is not None
    aws.refusals["DeleteChangeSet"] = ("InvalidChangeSetStatus", "it is in CREATE_IN_PROGRESS status")
    stack.drop(plan)
    assert (aws.state, aws.change_sets) == ("", [])


# ------------------------------------------------------------------------------------------------------------
# compiled or not

UNLIKE = next(
    version for version in PYTHONS if version != f"{sys.version_info.major}.{sys.version_info.minor}"
)
"""A Python version that the tests do not run on."""


def deployed(aws: FakeCloudFormation, folder: Path, path: Path) -> tuple[str, str]:
    """Run `deploy --dry-run` with programs from `path` alone. Return its output, and the code that it planned
    with.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PRIME_"))}
    env |= {
        **KEYS,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": aws.url,
        "PRIME_TRAIN_HOME": str(folder / "home"),
        "PATH": str(path),
    }
    words = [PROGRAM, "deploy", "--stack", NAME, "--dry-run", "--python", UNLIKE]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=HANG_S, check=True)
    (planned,) = (requested for requested in aws.requested if requested["Action"] == "CreateChangeSet")
    (code,) = re.findall(r"CodeUri: s3://[^/]+/(\S+)", planned["TemplateBody"])
    return done.stdout, code


def without(folder: Path) -> Path:
    """Return a PATH without Pythons."""
    (folder / "none").mkdir()
    return folder / "none"


def names_of(monkeypatch: pytest.MonkeyPatch, path: Path) -> tuple[str, str]:
    """Return the names of code that cannot be compiled with programs from `path`: its own, and that of the
    compiled code.
    """
    monkeypatch.setenv("PATH", str(path))
    plain = aws_code.code(Target(python=UNLIKE), None, print)
    return plain.name, plain.better


def test_code_that_cannot_be_compiled_says_what_that_costs_each_time(
    aws: FakeCloudFormation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = without(tmp_path)
    plain, _ = names_of(monkeypatch, path)
    aws.bucket_keys = [plain]
    output, code = deployed(aws, tmp_path, path)
    assert code == plain
    (line,) = (line for line in output.splitlines() if "compiled" in line)
    for words in (
        f"Python {UNLIKE} is not installed on this machine",
        "a cold start takes twice as long",
        f"put python{UNLIKE} on PATH",
    ):
        assert words in line


def test_compiled_code_that_was_brought_from_elsewhere_is_taken(
    aws: FakeCloudFormation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = without(tmp_path)
    plain, compiled = names_of(monkeypatch, path)
    aws.bucket_keys = [plain, compiled]
    output, code = deployed(aws, tmp_path, path)
    assert (code, "cold start" in output) == (compiled, False)


def test_code_that_can_be_compiled_does_not_take_the_place_of_what_could_not(
    aws: FakeCloudFormation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = without(tmp_path)
    plain, compiled = names_of(monkeypatch, path)
    (path / f"python{UNLIKE}").write_text(f"#!/bin/sh\necho {UNLIKE}\n")
    (path / f"python{UNLIKE}").chmod(0o755)
    aws.bucket_keys = [plain]
    output, code = deployed(aws, tmp_path, path)
    assert (code, "cold start" in output) == (compiled, False)


def test_without_keys_it_says_how_to_get_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(PermanentError, match="no AWS credentials were found\n  fix: run aws configure"):
        _ = Account({}, REGION).number


# ------------------------------------------------------------------------------------------------------------
# given up


def interrupted(aws: FakeCloudFormation, folder: Path, action: str) -> tuple[int, str]:
    """Run `deploy`, with Ctrl-C at the second call of that action. Return its exit code and its output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PRIME_"))}
    env |= {
        **KEYS,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": aws.url,
        "PRIME_TRAIN_HOME": str(folder / "home"),
    }
    with zipfile.ZipFile(folder / "code.zip", "w") as archive:
        archive.writestr("prime_lambdas/webhook.py", "")
    env |= {"HF_TOKEN": "hf"}
    words = [
        PROGRAM,
        "deploy",
        "--stack",
        NAME,
        "--yes",
        "--code",
        str(folder / "code.zip"),
        "--secret",
        "HF_TOKEN",
    ]
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        aws.await_asked(action, times=2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=HANG_S)
    return process.returncode, output


def test_giving_up_while_it_plans_leaves_nothing(aws: FakeCloudFormation, tmp_path: Path) -> None:
    aws.change_set_statuses = [WAITS]
    code, output = interrupted(aws, tmp_path, "DescribeChangeSet")
    assert (code, aws.state, aws.change_sets) == (130, "", []), output


def test_giving_up_while_it_works_says_that_aws_goes_on(aws: FakeCloudFormation, tmp_path: Path) -> None:
    aws.state, aws.course = "CREATE_COMPLETE", [("UPDATE_IN_PROGRESS", [])]
    code, output = interrupted(aws, tmp_path, "DescribeStackEvents")
    assert (code, aws.state) == (130, "UPDATE_IN_PROGRESS")
    assert "AWS is still working on stack training, which is UPDATE_IN_PROGRESS now" in output
    assert (
        "not stored in the secret yet: HF_TOKEN; when AWS has finished, run: prime-train deploy --stack "
        "training --secret HF_TOKEN" in output
    )
    assert not {"DeleteStack", "DeleteChangeSet", "CancelUpdateStack"} & set(aws.actions)
