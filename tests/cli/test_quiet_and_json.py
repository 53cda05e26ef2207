"""Commands for scripts: JSON from every command that reads, and no more output than requested."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from prime_train.cli.help.json_fields import JSON_FIELDS
from prime_train.status.run_status import GpusNow, Restart, SaveStatus
from tests.cli.documented import check
from tests.cli.inside import Inside
from tests.cli.shell import CONFIG
from tests.cli.test_examples import ROOT, commands


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    shell.config()
    return shell


def read(shell: Inside, *words: str) -> Any:
    return json.loads(shell.ok(*words))


def test_a_launch_prints_the_id_alone_or_the_run_as_status_does(shell: Inside) -> None:
    run_id = shell.ok("run", "-q", "small.yaml").removesuffix("\n")
    assert read(shell, "status", run_id, "--json")["run"] == run_id
    shell.write("x.py", "print(1)\n")
    done = shell.run("run", "--quiet", "--usd", "5", "--", "python", "x.py")
    assert (done.stdout.startswith("x-"), done.stdout.count("\n"), done.stderr) == (True, 1, "")
    row = read(shell, "run", "small.yaml", "--json")
    assert (row["state"], row.keys()) == ("queued", read(shell, "status", row["run"], "--json").keys())


def test_a_dry_run_lists_the_offers_and_why_others_are_left_out(shell: Inside) -> None:
    shell.config(CONFIG.replace("disk_gib: 1", "disk_gib: 1, usd_per_hour_max: 0.7"))
    output = read(shell, "run", "small.yaml", "--dry-run", "--json")
    assert [(offer["offer_id"], offer["usd_per_hour"]) for offer in output["offers"]] == [("local-spot", 0.6)]
    assert "costs $1.90/h, above hardware.usd_per_hour_max 0.70" in [
        offer["why"] for offer in output["left_out"]
    ]
    assert (output["files"], read(shell, "status", "--json")) == (1, [])


def test_what_changes_a_run_says_nothing_but_what_went_wrong(shell: Inside) -> None:
    run_id = shell.ok("run", "-q", "small.yaml").strip()
    assert shell.ok("stop", "-q", run_id) == ""
    done = shell.run("rm", "-q", run_id)
    assert (done.returncode, done.stdout, "only an ended run can be archived" in done.stderr) == (2, "", True)


def test_logs_rules_and_versions_are_records_too(shell: Inside) -> None:
    run_id = shell.ok("run", "-q", "small.yaml").strip()
    shell.ok("stop", "-q", run_id)
    output = read(shell, "logs", run_id, "--json")
    assert [(event["kind"], event["text"]) for event in output["history"]] == [
        ("asked", "the user requests stop")
    ]
    assert output["log"] == {"name": "", "lines": []}
    assert read(shell, "logs", run_id, "--grep", "cancel", "--json")["history"] == []
    rules = read(shell, "rules", "--json")
    assert read(shell, "rules", "pt020", "--json") in rules
    assert len({rule["code"] for rule in rules}) == len(rules) > 50
    shell.ok("config", "save", "small.yaml", "--note", "first")
    (version,) = read(shell, "config", "list", "small.yaml", "--json")
    assert (version["version"], version["note"], version["runs"]) == (1, "first", [run_id])


@pytest.mark.parametrize(
    "words",
    [("run", "small.yaml", "--follow", "-q"), ("logs", "x", "-f", "--json"), ("rules", "XX1", "--json")],
)
def test_what_excludes_each_other_is_refused(shell: Inside, words: tuple[str, ...]) -> None:
    assert shell.run(*words).returncode == 2


def test_every_field_that_is_printed_is_documented_and_every_documented_one_is_there(shell: Inside) -> None:
    run_id = shell.ok("run", "-q", "small.yaml").strip()
    shell.ok("stop", "-q", run_id)
    shell.ok("config", "save", "small.yaml", "--note", "first")
    shell.write("bad.yaml", "name: Bad\n")
    for command, words in {
        "run --dry-run": ("run", "small.yaml", "--dry-run"),
        "status": ("status",),
        "status RUN": ("status", run_id),
        "run": ("run", "small.yaml"),
        "logs": ("logs", run_id),
        "diagnose": ("diagnose", run_id),
        "rules": ("rules",),
        "config list": ("config", "list", "small.yaml"),
        "models list": ("models", "list"),
    }.items():
        check(command, read(shell, *words, "--json"), complete=True)
    for command in ("validate", "lint"):
        check(command, json.loads(shell.run(command, "bad.yaml", "--json").stdout), complete=True)


def test_parts_of_a_run_that_are_not_there_at_first_are_documented_too() -> None:
    for part, kind in (("restarts[]", Restart), ("saving", SaveStatus), ("gpus", GpusNow)):
        documented = {
            name.removeprefix(f"{part}.") for name in JSON_FIELDS["status RUN"] if name.startswith(f"{part}.")
        }
        assert documented == {field.name for field in fields(kind)}


def test_every_command_that_prints_json_has_its_fields_documented() -> None:
    takes = {
        name
        for name, command in commands(ROOT).items()
        if any("--json" in option.opts for option in command.params)
    }
    assert takes == {
        name.removesuffix(" RUN")
        .removesuffix(" --dry-run")
        .removesuffix(" --verify")
        .removesuffix(" --output")
        .removesuffix(" --log")
        for name in JSON_FIELDS
    }
