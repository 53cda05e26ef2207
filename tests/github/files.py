"""The project's actions and workflows, and its example of a repository that uses them: their places and
content.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import prime_train

ROOT = Path(__file__).parents[2]
ACTIONS = ROOT / "actions"
CONSUMER = ROOT / "examples" / "consumer-repo"
SHIMS = Path(__file__).parent / "shims"
MAJOR = f"v{prime_train.__version__.partition('.')[0]}"
"""The tag by which others use the actions and workflows: that of the major version, which each release
moves.
"""
VERBS = ("validate", "launch", "watch", "stop", "status")
USES = re.compile(r"^\s*-?\s*uses:\s*(\S+)(.*)$", re.MULTILINE)


def actions() -> list[Path]:
    return sorted(ACTIONS.glob("*/action.yml"))


def workflows() -> list[Path]:
    return sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def consumer_workflows() -> list[Path]:
    return sorted((CONSUMER / ".github" / "workflows").glob("*.yml"))


def everything() -> list[Path]:
    return [*actions(), *workflows(), *consumer_workflows()]


def scripts() -> list[Path]:
    return sorted(ACTIONS.glob("*/*.sh"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> dict[str, Any]:
    """Return the parsed file, with the key "on" as text, because YAML 1.1 reads it as a boolean."""
    text = yaml.safe_load(path.read_text())
    if True in text:
        text["on"] = text.pop(True)
    assert isinstance(text, dict)
    return text


def action(name: str) -> dict[str, Any]:
    return parsed(ACTIONS / name / "action.yml")


def uses_of(root: Path = ROOT) -> set[str]:
    """Yield third-party actions, each with its ref."""
    paths = [*root.glob("actions/*/action.yml"), *root.glob(".github/workflows/*.yml")]
    found = {match[1] for path in paths for match in USES.finditer(path.read_text())}
    return {use for use in found if not use.startswith(("$/", "./"))}


def steps(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the steps of an action, or of every job of a workflow."""
    yield from document.get("runs", {}).get("steps", [])
    for job in document.get("jobs", {}).values():
        yield from job.get("steps", [])
