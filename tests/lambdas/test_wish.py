"""What a user may wish of a deployment, and what it is told that it would change."""

import zipfile
from pathlib import Path

import pytest

from prime_train.adapters.aws_deploy import Changed, Plan, Target, package
from prime_train.cli.aws import plan as aws_plan
from prime_train.cli.aws import settings as aws_wish
from prime_train.core.errors import UsageError
from prime_train.operations.aws import code as aws_code
from prime_train.ports import PermanentError
from tests.lambdas.deployed import BIN

NO_ADDRESSES = """
    train.example.com  htps://train.example.com  http://train.example.com  https://  https://train  https://train.example.com/?a=1
    https://me@train.example.com  https://train.example.com:port  https://traín.example.com  https://[train
"""


@pytest.mark.parametrize("url", [*NO_ADDRESSES.split(), "https://a b.example.com"])
def test_an_address_that_no_machine_could_call_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address that machines could call"):
        aws_wish.parameters(PublicUrl=url)


@pytest.mark.parametrize(
    "url", ["", "https://train.example.com", "https://train.example.com:8443/x", "https://[2001:db8::1]", "http://127.0.0.1:80"]
)
def test_an_address_is_taken_as_it_is_and_an_empty_one_is_the_functions_own(url: str) -> None:
    assert aws_wish.parameters(PublicUrl=url, AlarmEmail=None) == {"PublicUrl": url}


def test_other_parameters_are_those_of_the_template_that_have_no_option() -> None:
    assert aws_wish.others(["UsdPerHourMax=40", "EvidenceDays="]) == {"UsdPerHourMax": "40", "EvidenceDays": ""}
    with pytest.raises(UsageError, match="there is no parameter UsdPerHour") as refused:
        aws_wish.others(["UsdPerHour=4"])
    assert "--set UsdPerHourMax=4" in refused.value.fix
    for pair in ("UsdPerHourMax", "Dollars=4", "PublicUrl=https://train.example.com", "Runtime=python3.13"):
        with pytest.raises(UsageError, match="no parameter and its value"):
            aws_wish.others([pair])


@pytest.mark.parametrize(("said", "shown"), [("HF_TOKEN=hf_very_secret", "HF_TOKEN"), ("hf very secret", ""), ("=hf_very_secret", "")])
def test_a_secret_that_is_said_instead_of_its_name_is_not_repeated(said: str, shown: str) -> None:
    with pytest.raises(UsageError, match="the name of a variable, and not its value") as refused:
        aws_wish.secrets([said])
    told = f"{refused.value} {refused.value.fix}"
    assert "very" not in told
    assert shown in told


def test_what_is_brought_into_the_secret_and_reaches_no_run_is_named() -> None:
    given = ["PRIME_API_KEY", "HF_TOKEN", "JUDGE_KEY", "AWS_SECRET_ACCESS_KEY"]
    assert aws_wish.for_nobody(given, {}) == ("JUDGE_KEY", "AWS_SECRET_ACCESS_KEY")
    assert aws_wish.for_nobody(given, {"RunSecrets": "JUDGE_*,*"}) == ("AWS_SECRET_ACCESS_KEY",)
    with pytest.raises(UsageError, match="PRIME_TRAIN_RUN_SECRETS holds something"):
        aws_wish.others(["RunSecrets=a=b"])
    with pytest.raises(UsageError, match="parameter of the stack"):
        aws_wish.secrets(["PRIME_TRAIN_RUN_SECRETS"])


def test_secrets_that_aws_would_not_hold_are_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "x" * 61_000)
    assert aws_wish.secrets(["HF_TOKEN"]) == {"HF_TOKEN": "x" * 61_000}
    monkeypatch.setenv("OTHER_TOKEN", "y" * 1000)
    with pytest.raises(UsageError, match="60 KiB"):
        aws_wish.secrets(["HF_TOKEN", "OTHER_TOKEN"])


@pytest.mark.parametrize("text", ["abc", "ab" * 32 + ",", f"{'ab' * 32},x", f"{'ab' * 32} {'cd' * 32}"])
def test_a_master_key_that_the_functions_would_not_take_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PRIME_TRAIN_MASTER_KEY", text)
    with pytest.raises(UsageError, match="64 hex digits") as refused:
        aws_wish.secrets(["PRIME_TRAIN_MASTER_KEY"])
    assert text not in str(refused.value)


def test_two_master_keys_are_taken_while_one_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_TRAIN_MASTER_KEY", f"{'ab' * 32},{'cd' * 32}")
    assert aws_wish.secrets(["PRIME_TRAIN_MASTER_KEY"]) == {"PRIME_TRAIN_MASTER_KEY": f"{'ab' * 32},{'cd' * 32}"}


def test_what_it_runs_on_stays_unless_something_else_is_said() -> None:
    now = {"Architecture": "x86_64", "Runtime": "python3.13"}
    assert aws_wish.target(None, None, {}) == Target("arm64", "3.12")
    assert aws_wish.target(None, None, now) == Target("x86_64", "3.13")
    assert aws_wish.target("arm64", None, now) == Target("arm64", "3.13")
    with pytest.raises(UsageError, match="arm64 or x86_64"):
        aws_wish.target("riscv", None, now)


def test_only_a_zip_of_the_functions_is_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        archive.writestr("a.py", "")
    for name in ("text", "other"):
        with pytest.raises(UsageError, match=r"no zip with prime_lambdas/webhook\.py in it"):
            aws_code.code(Target(), tmp_path / name, print)


def test_the_code_is_named_where_the_template_has_it() -> None:
    assert aws_code.placed("b", "k.zip").count("CodeUri: s3://b/k.zip\n") == 1
    assert "code.zip" not in aws_code.placed("b", "k.zip")


def test_a_plan_tells_what_would_be_lost_to_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {"Table": "AWS::DynamoDB::Table", "WebhookLog": "AWS::Logs::LogGroup"}
    aws_plan.show(Plan("name", False, tuple(Changed("Modify", name, kind, True) for name, kind in kinds.items())))
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert said[1] == ["modify", "Table", "DynamoDB::Table", "by", "a", "new,", "empty", "one"]
    assert said[2] == ["modify", "WebhookLog", "Logs::LogGroup", "by", "a", "new", "one"]
    assert " ".join(said[3]) == "what is in Table stays where it is, but is not used any more"


def test_where_packages_can_not_be_reached_it_says_where_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PATH": str(BIN), "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PermanentError, match=r"cannot be had: .*\n  fix: .*--save FOLDER"):
        package({}, aws_code.pins(), Target(), print)
