"""The options of a deployment, and the reported changes."""

import zipfile
from pathlib import Path

import pytest

from prime_train.aws import code as aws_code
from prime_train.aws import deploy, settings
from prime_train.aws.commands.deploy import show_plan
from prime_train.aws.package import Target, package
from prime_train.aws.plan import Changed, StackChange
from prime_train.errors import PermanentError, UsageError
from prime_train.providers.kinds import PROVIDERS
from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.text.explained_errors import explained
from prime_train.text.invocations import worded
from tests.lambdas.deployed import BIN

NO_ADDRESSES = """
    train.example.com  htps://train.example.com  http://train.example.com  https://  https://train  https://train.example.com/?a=1
    https://me@train.example.com  https://train.example.com:port  https://traín.example.com  https://[train
"""


@pytest.mark.parametrize("url", [*NO_ADDRESSES.split(), "https://a b.example.com"])
def test_an_address_that_no_machine_could_call_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not an address that machines can call"):
        settings.parameters(PublicUrl=url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://train.example.com",
        "https://train.example.com:8443/x",
        "https://[2001:db8::1]",
        "http://127.0.0.1:80",
    ],
)
def test_an_address_is_taken_as_it_is_and_an_empty_one_is_the_functions_own(url: str) -> None:
    assert settings.parameters(PublicUrl=url, AlarmEmail=None) == {"PublicUrl": url}


@pytest.mark.parametrize("name", ["local", "primes", ""])
def test_only_a_provider_that_rents_out_machines_is_one_for_a_stack(name: str) -> None:
    with pytest.raises(UsageError, match="is no provider that rents out machines") as refused:
        settings.parameters(Provider=name)
    assert all(row.is_rented == (name in str(refused.value.fix)) for name, row in PROVIDERS.items())
    assert [settings.parameters(Provider=name) for name, row in PROVIDERS.items() if row.is_rented]


def test_other_parameters_are_those_of_the_template_that_have_no_option() -> None:
    assert settings.others(["UsdPerHourMax=40", "EvidenceDays="]) == {
        "UsdPerHourMax": "40",
        "EvidenceDays": "",
    }
    with pytest.raises(UsageError, match="there is no parameter UsdPerHour") as refused:
        settings.others(["UsdPerHour=4"])
    assert "--set UsdPerHourMax=4" in worded(refused.value.fix)
    for pair in ("UsdPerHourMax", "Dollars=4", "PublicUrl=https://train.example.com", "Runtime=python3.13"):
        with pytest.raises(UsageError, match="is not of the form NAME=VALUE"):
            settings.others([pair])


def test_parameters_that_do_not_fit_into_a_functions_environment_are_refused_before_anything_is_built() -> (
    None
):
    settings.check_environment({"RunSecrets": "A" * 1500, "Policy": "B" * 1000, "AlarmEmail": "C" * 5000})
    with pytest.raises(
        UsageError, match="RunSecrets has 1,501 bytes and Policy has 1,000 bytes; at most 2,500 fit"
    ) as refused:
        settings.check_environment({"RunSecrets": "A" * 1501, "Policy": "B" * 1000})
    assert "JUDGE_*" in worded(refused.value.fix)


def test_long_parameters_are_refused_also_where_the_code_is_only_saved(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most 2,500 fit"):
        deploy.save(settings.Request({"Policy": "B" * 3000}, {}), tmp_path / "saved", print)
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize(
    ("output", "shown"),
    [("HF_TOKEN=hf_very_secret", "HF_TOKEN"), ("hf very secret", ""), ("=hf_very_secret", "")],
)
def test_a_secret_that_is_reported_instead_of_its_name_is_not_repeated(output: str, shown: str) -> None:
    with pytest.raises(UsageError, match="the name of an environment variable, not as its value") as refused:
        settings.secrets([output], {})
    reported = f"{refused.value} {worded(refused.value.fix)}"
    assert "very" not in reported
    assert shown in reported


def test_what_is_brought_into_the_secret_and_reaches_no_run_is_named() -> None:
    given = ["PRIME_API_KEY", "HF_TOKEN", "JUDGE_KEY", "AWS_SECRET_ACCESS_KEY"]
    assert settings.for_nobody(given, {}) == ("JUDGE_KEY", "AWS_SECRET_ACCESS_KEY")
    assert settings.for_nobody(given, {"RunSecrets": "JUDGE_*,*"}) == ("AWS_SECRET_ACCESS_KEY",)
    assert settings.run_secrets_with(("JUDGE_KEY",), {}) == (*DEFAULT, "JUDGE_KEY"), (
        "the parameter replaces the whole list"
    )
    assert settings.run_secrets_with(("MY_KEY",), {"RunSecrets": "JUDGE_*, HF_TOKEN"}) == (
        "JUDGE_*",
        "HF_TOKEN",
        "MY_KEY",
    )
    with pytest.raises(UsageError, match="PRIME_TRAIN_RUN_SECRETS contains something"):
        settings.others(["RunSecrets=a=b"])
    with pytest.raises(UsageError, match="parameter of the stack"):
        settings.secrets(["PRIME_TRAIN_RUN_SECRETS"], {})


def test_secrets_that_aws_would_not_hold_are_refused_before_anything_is_made() -> None:
    environment = {"HF_TOKEN": "x" * 61_000, "OTHER_TOKEN": "y" * 1000}
    assert settings.secrets(["HF_TOKEN"], environment) == {"HF_TOKEN": "x" * 61_000}
    with pytest.raises(UsageError, match="60 KiB"):
        settings.secrets(["HF_TOKEN", "OTHER_TOKEN"], environment)


@pytest.mark.parametrize("text", ["abc", "ab" * 32 + ",", f"{'ab' * 32},x", f"{'ab' * 32} {'cd' * 32}"])
def test_a_master_key_that_the_functions_would_not_take_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="64 hex digits") as refused:
        settings.secrets(["PRIME_TRAIN_MASTER_KEY"], {"PRIME_TRAIN_MASTER_KEY": text})
    assert text not in str(refused.value)


def test_two_master_keys_are_taken_while_one_is_replaced() -> None:
    environment = {"PRIME_TRAIN_MASTER_KEY": f"{'ab' * 32},{'cd' * 32}"}
    assert settings.secrets(["PRIME_TRAIN_MASTER_KEY"], environment) == environment


def test_what_it_runs_on_stays_unless_something_else_is_reported() -> None:
    now = {"Architecture": "x86_64", "Runtime": "python3.13"}
    assert settings.target(None, None, {}) == Target("arm64", "3.12")
    assert settings.target(None, None, now) == Target("x86_64", "3.13")
    assert settings.target("arm64", None, now) == Target("arm64", "3.13")
    with pytest.raises(UsageError, match="arm64 or x86_64"):
        settings.target("riscv", None, now)


def test_only_a_zip_of_the_functions_is_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        archive.writestr("a.py", "")
    for name in ("text", "other"):
        with pytest.raises(UsageError, match=r"not a zip file that contains prime_lambdas/webhook\.py"):
            aws_code.code(Target(), tmp_path / name, print)


def test_the_code_is_named_where_the_template_has_it() -> None:
    assert aws_code.placed("b", "k.zip").count("CodeUri: s3://b/k.zip\n") == 1
    assert "code.zip" not in aws_code.placed("b", "k.zip")


def test_a_plan_tells_what_would_be_lost_to_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {"Table": "AWS::DynamoDB::Table", "WebhookLog": "AWS::Logs::LogGroup"}
    show_plan(
        StackChange("name", False, tuple(Changed("Modify", name, kind, True) for name, kind in kinds.items()))
    )
    output = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert output[1] == ["modify", "Table", "DynamoDB::Table", "by", "a", "new,", "empty", "one"]
    assert output[2] == ["modify", "WebhookLog", "Logs::LogGroup", "by", "a", "new", "one"]
    assert " ".join(output[3]) == "the contents of Table are kept, but no longer used"


def test_where_packages_cannot_be_reached_it_says_where_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PATH": str(BIN), "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PermanentError, match="cannot be downloaded: ") as refused:
        package({}, aws_code.pins(), Target(), print)
    assert (
        "\n  fix: on a machine that can download packages, run prime-train deploy --save FOLDER"
        in explained(refused.value)[1]
    )
