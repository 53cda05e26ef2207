"""Third-party checks find nothing in the actions, the workflows and the example, and would find mistakes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.github import languageservice
from tests.github.files import (
    CONSUMER,
    ROOT,
    actions,
    consumer_workflows,
    everything,
    named,
    scripts,
    workflows,
)
from tests.waiting import HANG_S

BIN = Path(sys.executable).parent


def run(*command: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", [*workflows(), *consumer_workflows()]),
        ("custom.github-workflows-require-timeout", workflows()),
        ("vendor.github-actions", actions()),
    ],
)
def test_files_follow_the_schema(schema: str, paths: list[Path]) -> None:
    done = run("check-jsonschema", "--builtin-schema", schema, *map(named, paths))
    assert done.returncode == 0, done.stdout


def zizmor(folder: Path) -> list[dict[str, Any]]:
    """Return everything that zizmor finds, without the network, at its strictest."""
    done = run(
        "zizmor",
        "--offline",
        "--persona=auditor",
        "--strict-collection",
        "--format=json",
        "--no-progress",
        "--quiet",
        ".",
        folder=folder,
    )
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


def copied(folder: Path) -> Path:
    """Copy only the files to check, because the repository has folders with other people's workflows, such as
    .venv.
    """
    for path in everything():
        (folder / named(path)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / named(path))
    return folder


def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    found = [
        (finding["ident"], finding["desc"]) for finding in zizmor(copied(tmp_path)) if not finding["ignored"]
    ]
    assert found == []


def test_zizmor_is_told_to_ignore_only_what_has_its_reason_beside_it() -> None:
    for path in everything():
        for line in path.read_text().splitlines():
            if "zizmor: ignore[" in line:
                assert line.endswith("] see above"), f"{named(path)}: {line}"


def test_zizmor_would_find_an_input_in_a_script(tmp_path: Path) -> None:
    file = copied(tmp_path) / "actions" / "launch" / "action.yml"
    file.write_text(file.read_text().replace("gha launch'", "gha launch ${{ inputs.config }}'"))
    assert "template-injection" in {finding["ident"] for finding in zizmor(tmp_path)}


def test_shellcheck_finds_nothing() -> None:
    assert scripts()
    done = run("shellcheck", *map(named, scripts()))
    assert done.returncode == 0, done.stdout


def test_every_script_stops_at_the_first_failure() -> None:
    for path in scripts():
        text = path.read_text()
        assert text.startswith("#!/usr/bin/env bash\n"), named(path)
        assert "\nset -euo pipefail\n" in text, named(path)
        assert path.stat().st_mode & 0o111, f"{named(path)} is not executable"


def test_the_language_service_finds_nothing() -> None:
    assert languageservice.complaints(ROOT, map(named, everything())) == []


def test_the_language_service_would_find_an_input_that_is_not_there(tmp_path: Path) -> None:
    file = copied(tmp_path) / ".github" / "workflows" / "launch.yml"
    file.write_text(file.read_text().replace("dry-run: ${{", "dry: ${{"))
    (found,) = languageservice.complaints(tmp_path, [".github/workflows/launch.yml"])
    assert found.endswith("Invalid action input 'dry'")


def test_the_language_service_would_find_a_reusable_workflow_called_wrongly(tmp_path: Path) -> None:
    file = copied(tmp_path) / named(CONSUMER) / ".github" / "workflows" / "stop.yml"
    file.write_text(file.read_text().replace("      now: ${{", "      never: ${{"))
    found = languageservice.complaints(tmp_path, [str(file.relative_to(tmp_path))])
    assert any("never" in complaint for complaint in found), found
