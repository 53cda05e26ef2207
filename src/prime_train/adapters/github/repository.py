"""What a repository holds, and who may write to it."""

import base64
import binascii
import re

from pydantic import model_validator

from prime_train.adapters.github.api import GitHub, Part, piece, quoted

WRITERS = frozenset({"admin", "maintain", "write"})
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?")


class ChangedFile(Part):
    """A file of a pull request. `status`: added, modified, removed, renamed, ..."""

    filename: str
    status: str
    previous_filename: str | None = None


class _Content(Part):
    type: str
    encoding: str = ""
    content: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_a_folder(cls, said: object) -> object:
        return {"type": "dir"} if isinstance(said, list) else said


class _Permission(Part):
    permission: str
    role_name: str = ""


class _Repository(Part):
    full_name: str


class _Number(Part):
    number: int


class _Commit(Part):
    sha: str


class _End(Part):
    sha: str
    repo: _Repository | None = None


class Pull(Part):
    """`head.repo` is None where a fork is gone."""

    number: int
    head: _End
    base: _End
    state: str = "open"


def changed_files(github: GitHub, pull: int) -> list[ChangedFile]:
    return list(github.listed(ChangedFile, f"pulls/{pull}/files"))


def pull_of(github: GitHub, number: int) -> Pull:
    return github.get(Pull, f"pulls/{number}")


def has_commit(github: GitHub, commit: str) -> bool:
    # Of what looks like a commit and is none, GitHub says 422.
    return github.find(_Commit, f"commits/{piece(commit)}", none=frozenset({404, 422})) is not None


def pulls_with(github: GitHub, commit: str) -> list[int]:
    """Numbers of the pull requests that a commit belongs to, or came by."""
    return [pull.number for pull in github.listed(_Number, f"commits/{piece(commit)}/pulls")]


def content_at(github: GitHub, path: str, ref: str) -> str | None:
    """A text file at a commit or branch. None: it is not there, or is none."""
    found = github.find(_Content, f"contents/{quoted(path)}", {"ref": ref})
    if found is None or found.type != "file" or found.encoding != "base64":
        return None
    try:
        return base64.b64decode(found.content).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def may_write(github: GitHub, login: str) -> bool:
    """Whether that person may push to the repository. A name that nobody has may not."""
    if not _LOGIN.fullmatch(login):
        return False
    found = github.find(_Permission, f"collaborators/{piece(login)}/permission")
    return found is not None and (found.permission in WRITERS or found.role_name in WRITERS)
