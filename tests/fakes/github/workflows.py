"""The triggers of the workflow files at a commit, and the runs that they start."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from tests.fakes.github.refusals import Refused
from tests.fakes.github.repos import Repo

FOLDER = ".github/workflows/"


def triggers(repo: Repo, sha: str) -> dict[str, dict[str, Any]]:
    """Return by file each event that starts it, with its conditions."""
    found = {}
    for path, (_, blob) in repo.git.objects.files(sha).items():
        if path.startswith(FOLDER) and path.endswith((".yml", ".yaml")):
            # To YAML the word `on` is a truth.
            written = yaml.safe_load(repo.git.objects.blobs[blob])
            found[path] = _events(written.get("on", written.get(True))) if isinstance(written, dict) else {}
    return found


def workflow_id(path: str) -> int:
    """Return a workflow's id, which is the same for the same file, as at GitHub."""
    return sum(ord(letter) * (place + 1) for place, letter in enumerate(path)) + 1_000_000


def find(repo: Repo, sha: str, wanted: str) -> str:
    """Return the path of a workflow that is named by its file or its id."""
    for path in triggers(repo, sha):
        if wanted in (path, path.removeprefix(FOLDER), str(workflow_id(path))):
            return path
    raise Refused(404, "Not Found")


def waits_for(on: Mapping[str, Any], event_type: str) -> bool:
    """Return whether a repository_dispatch of this type starts the workflow; without types every one does."""
    if "repository_dispatch" not in on:
        return False
    types = on["repository_dispatch"].get("types")
    return types is None or event_type in ([types] if isinstance(types, str) else types)


def inputs(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of the run: the given ones, and defaults for the rest. Refuses as GitHub does."""
    unexpected = sorted(given.keys() - declared.keys())
    if unexpected:
        raise Refused(422, f"Unexpected inputs provided: {json.dumps(unexpected)}")
    full = {}
    for name, message in declared.items():
        about = message or {}
        value = given.get(name, about.get("default"))
        if value in (None, "") and about.get("required"):
            raise Refused(422, f"Required input '{name}' not provided")
        if about.get("type") == "choice" and value is not None and value not in about["options"]:
            raise Refused(
                422, f"Provided value '{value}' for input '{name}' not in the list of allowed values"
            )
        full[name] = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return full


def _events(on: object) -> dict[str, Any]:
    if isinstance(on, str):
        return {on: {}}
    if isinstance(on, list):
        return {str(event): {} for event in on}
    return {str(event): about or {} for event, about in on.items()} if isinstance(on, dict) else {}
