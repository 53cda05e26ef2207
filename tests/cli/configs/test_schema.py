"""`prime-train schema`, and the copy for editors that is in the repository."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.shell import Shell

ROOT = Path(__file__).parents[3]
STORED = ROOT / "configs" / "schema.json"


def test_the_stored_schema_is_what_the_command_prints(shell: Shell) -> None:
    assert shell.ok("schema") == STORED.read_text(encoding="utf-8"), (
        "make it anew: prime-train schema --out configs/schema.json"
    )


def test_out_writes_the_file_and_its_folder(shell: Shell) -> None:
    shell.ok("schema", "--out", "a/b/schema.json")
    assert json.loads((shell.here / "a/b/schema.json").read_text())["$schema"].startswith(
        "https://json-schema.org/"
    )


def test_a_file_that_cannot_be_written_is_reported_plainly(shell: Shell) -> None:
    shell.write("taken", "")
    done = shell.run("schema", "--out", "taken/schema.json")
    assert done.returncode == 4
    assert "taken" in done.stderr
    assert "Traceback" not in done.stderr


def schema() -> Any:
    return json.loads(STORED.read_text(encoding="utf-8"))


def test_the_schema_is_one_and_every_config_here_keeps_to_it() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    for path in (ROOT / "configs").glob("*.yaml"):
        jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), schema())


@pytest.mark.parametrize(
    "change", [{"nam": "x"}, {"budget": {"usd": 0}}, {"hardware": {"spot": "always"}}, {"name": "Big Name"}]
)
def test_the_schema_bites(change: dict[str, Any]) -> None:
    good = {"name": "tiny", "trainer": {"command": "x"}, "budget": {"usd": 1}}
    jsonschema.validate(good, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(good | change, schema())


def test_editors_can_show_what_a_key_means() -> None:
    properties = schema()["$defs"]["BudgetSpec"]["properties"]
    assert (
        properties["hours"]["description"]
        == "Hours of training over all attempts, each counted from its first step."
    )
