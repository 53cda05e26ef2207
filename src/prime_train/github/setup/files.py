"""The workflow files of a repository that trains from GitHub: those of the example, pinned to one commit of
prime-train.

A file is ours as long as it differs from the example in nothing but that commit, and the secrets for
providers that it hands on. Everything else in it was changed by somebody, also the choice of a tag or a
branch instead of a commit, and stays.
"""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from prime_train.advice import Call, Operation
from prime_train.environment import CREDENTIALS, OFFERS
from prime_train.errors import UsageError
from prime_train.providers.kinds import credentials
from prime_train.text.invocations import command

FOLDER = ".github/workflows"
_NOTE = (
    f"    # The commit of a release; {command(Call(Operation.SET_UP_GITHUB))} of a newer "
    "version "
    "proposes that version's.\n"
)
_CALLED = re.compile(
    r"(?m)^(?:    #[^\n]*\n)?(    uses: )[\w.-]+/[\w.-]+(/\.github/workflows/[\w-]+\.yml)@([^\s]+)[^\n]*$"
)
OLD_OFFERS = frozenset(
    {"PRIME_OFFERS_KEY", "RUNPOD_OFFERS_KEY", "KUBERNETES_OFFERS", "SSH_OFFERS", "VAST_OFFERS_KEY"}
)
"""Its forerunners, one for each provider; those of `PRIME_TRAIN_CREDENTIALS` have the names of the providers'
own variables.
"""
_HANDED_ON = re.compile(r"(?m)^      (\w+): \$\{\{ secrets\.\1 \}\}\n")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECRET = re.compile(r"\bsecrets\.(\w+)")
_SOURCE = re.compile(
    r"(?:https|ssh)://(?:[^@/\s]+@)?github\.com/([A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}?)(?:\.git)?/?"
)
_GIVEN = re.compile(r"([A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100})(?:@([A-Za-z0-9._/-]{1,200}))?")


@dataclass(frozen=True)
class WorkflowsRef:
    """A ref of the repository with prime-train's workflows. `ref`: a tag, a branch or a commit; `label`: how
    a person calls it.
    """

    repository: str
    ref: str
    label: str


@dataclass(frozen=True)
class Pin:
    """A commit of the repository with prime-train's workflows. `label`: how a person calls it."""

    repository: str
    commit: str
    label: str


class FileState(Enum):
    """A file on GitHub, compared with ours."""

    NEW = "new"
    SAME = "same"
    OLDER = "of another version"
    CHANGED = "changed by somebody"


def workflow_files(pin: Pin) -> dict[str, str]:
    """Return the text of each workflow file by its path in a repository."""
    return {f"{FOLDER}/{name}": _pinned(text, pin) for name, text in example_files().items()}


def example_files() -> dict[str, str]:
    """Return the workflow files of the example, by name."""
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted((_example() / FOLDER).glob("*.yml"))
    }


def secrets_of(name: str) -> frozenset[str]:
    """Return the names of the secrets that the workflow of that name hands on."""
    return frozenset(_SECRET.findall(example_files()[name]))


def state_of(there: str | None, ours: str) -> FileState:
    """Compare a file of a repository, None if it does not exist, with ours."""
    if there is None:
        return FileState.NEW
    if there == ours:
        return FileState.SAME
    pin = _CALLED.search(there)
    is_ours = pin is not None and _COMMIT.fullmatch(pin[3]) is not None and _plain(there) == _plain(ours)
    return FileState.OLDER if is_ours else FileState.CHANGED


def difference(path: str, there: str, ours: str) -> str:
    """Return what would change in a file, as a unified diff."""
    lines = difflib.unified_diff(
        there.splitlines(), ours.splitlines(), f"{path} (there)", f"{path} (prime-train)", lineterm=""
    )
    return "\n".join(lines)


def source_of(direct_url: str | None, version: str) -> WorkflowsRef | None:
    """Return where an installed prime-train comes from, by what pip and uv record of it (PEP 610); None if
    that is no repository on GitHub, as for a wheel or a checkout.
    """
    try:
        content = json.loads(direct_url or "null")
    except ValueError:
        return None
    known: Mapping[str, object] = content if isinstance(content, dict) else {}
    vcs, found = known.get("vcs_info"), _SOURCE.fullmatch(str(known.get("url", "")))
    commit = vcs.get("commit_id") if isinstance(vcs, dict) else None
    if found is None or not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        return None
    return WorkflowsRef(found[1], commit, f"v{version}")


def given_source(text: str, version: str) -> WorkflowsRef:
    """Parse OWNER/NAME or OWNER/NAME@REF; without a ref, the version's tag is meant. Raises UsageError for
    anything else.
    """
    found = _GIVEN.fullmatch(text)
    if found is None:
        raise UsageError(f"{text[:100]!r} is not a repository", fix="write OWNER/NAME, or OWNER/NAME@REF")
    ref = found[2] or f"v{version}"
    return WorkflowsRef(found[1], ref, ref)


def _pinned(text: str, pin: Pin) -> str:
    label = "" if _COMMIT.fullmatch(pin.label) else f" # {pin.label}"
    return _CALLED.sub(lambda found: f"{_NOTE}{found[1]}{pin.repository}{found[2]}@{pin.commit}{label}", text)


def _plain(text: str) -> str:
    """Return the text without what differs from version to version."""
    differs = {CREDENTIALS, OFFERS, *OLD_OFFERS, *credentials()}
    return _HANDED_ON.sub(lambda found: "" if found[1] in differs else found[0], _CALLED.sub(r"\1\2", text))


def _example() -> Path:
    """Return the folder of the package or the checkout."""
    package = Path(__file__).parents[2]
    known = (package / "examples" / "consumer-repo", package.parents[1] / "examples" / "consumer-repo")
    return next((path for path in known if path.is_dir()), known[0])
