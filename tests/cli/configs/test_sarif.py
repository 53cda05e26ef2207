"""The output of `validate --format sarif` is valid SARIF, within the limits of GitHub."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from prime_train.checks.all_rules import by_code
from prime_train.checks.report.sarif import RESULTS_MAX, sarif
from prime_train.spec.finding import CODES, Finding, Severity
from tests.cli.shell import Shell

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads(
    (ROOT / "tests" / "data" / "sarif" / "sarif-2.1.0-rtm.4.json").read_text(encoding="utf-8")
)
MESSAGE_CHARS_MAX = 3000
MANY = """\
name: My Run
trainer:
  comand: python x
  steps: three
hardware: {spot: no, gpus: [H1]}
environment: {A: {b: c}}
budgett: {usd: 1}
"""


def held(log: dict[str, Any]) -> dict[str, Any]:
    """Validate the log against the schema, and return its run."""
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    return dict(run)


def uris(run: dict[str, Any]) -> set[str]:
    return {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]
    }


def test_many_findings_of_many_codes_are_sarif_as_published(shell: Shell) -> None:
    shell.write("a b/run #1.yaml", MANY)
    for path in sorted((ROOT / "tests" / "data" / "prime_rl_configs").glob("*.toml")):
        shell.write(
            f"{path.stem}.toml",
            path.read_text(encoding="utf-8")
            .replace("batch_size", "batch_sizes")
            .replace("seq_len", "seq_lenn"),
        )
    done = shell.run(
        "validate",
        "--format",
        "sarif",
        "a b/run #1.yaml",
        *(f"{path.stem}.toml" for path in ROOT.glob("tests/data/prime_rl_configs/*.toml")),
    )
    assert done.returncode == 1
    run = held(json.loads(done.stdout))
    assert len({result["ruleId"] for result in run["results"]}) >= 5
    assert "a%20b/run%20%231.yaml" in uris(run)
    assert all(len(result["message"]["text"]) <= MESSAGE_CHARS_MAX for result in run["results"])


def test_every_code_there_is_can_be_reported_in_sarif() -> None:
    run = held(
        sarif(
            [
                Finding(code, "said", "a.yaml", severity=severity)
                for code in (*CODES, *by_code())
                for severity in Severity
            ]
        )
    )
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {*CODES, *by_code()}
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["id"] in CODES or rule["help"]["markdown"]


def test_of_too_many_findings_the_errors_are_reported_and_that_there_are_more() -> None:
    found = [
        Finding(
            "PT010",
            f"said {line}",
            "a.yaml",
            line,
            severity=Severity.ERROR if line % 7 == 0 else Severity.NOTE,
        )
        for line in range(1, 2 * RESULTS_MAX + 1)
    ]
    run = held(sarif(found))
    levels = [result["level"] for result in run["results"]]
    assert len(levels) == RESULTS_MAX
    assert levels.count("error") == 2 * RESULTS_MAX // 7
    (output,) = run["invocations"][0]["toolExecutionNotifications"]
    assert f"{RESULTS_MAX:,} more" in output["message"]["text"]


@pytest.mark.parametrize(
    ("file", "uri"),
    [("./a/b.yaml", "a/b.yaml"), ("{here}/a/b.yaml", "a/b.yaml"), ("/x y/a.yaml", "file:///x%20y/a.yaml")],
)
def test_a_file_is_named_as_seen_from_where_the_command_runs(file: str, uri: str) -> None:
    assert uris(held(sarif([Finding("PT010", "said", file.format(here=Path.cwd()))]))) == {uri}


def test_lines_and_columns_are_those_of_the_file(shell: Shell) -> None:
    shell.write("é.yaml", MANY)
    log = json.loads(shell.run("validate", "--format", "sarif", "é.yaml").stdout)
    assert {unquote(uri) for uri in uris(held(log))} == {"é.yaml"}
    regions = [result["locations"][0]["physicalLocation"]["region"] for result in log["runs"][0]["results"]]
    assert {"startLine": 3, "startColumn": 3} in regions
