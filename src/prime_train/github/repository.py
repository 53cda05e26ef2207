"""Content of a repository, and who may write to it."""

import base64
import binascii
import re

from pydantic import model_validator

from prime_train.github.api import GitHub, GitHubModel, piece, quoted

COMPARED_MAX = 300
"""The largest number of files that GitHub lists for two commits."""
WRITERS = frozenset({"admin", "maintain", "write"})
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?")


class ChangedFile(GitHubModel):
    """A file of a pull request. `status`: added, modified, removed, renamed, ..."""

    filename: str
    status: str
    previous_filename: str | None = None


class _Comparison(GitHubModel):
    files: tuple[ChangedFile, ...] = ()


class _Content(GitHubModel):
    type: str
    encoding: str = ""
    content: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_a_folder(cls, listing: object) -> object:
        return {"type": "dir"} if isinstance(listing, list) else listing


class _Permission(GitHubModel):
    permission: str
    role_name: str = ""


class _Repository(GitHubModel):
    full_name: str


class _Number(GitHubModel):
    number: int


class _Commit(GitHubModel):
    sha: str


class _End(GitHubModel):
    sha: str
    ref: str = ""
    repo: _Repository | None = None


class Pull(GitHubModel):
    """A pull request. `head.repo` is None if the fork was deleted."""

    number: int
    head: _End
    base: _End
    state: str = "open"


def changed_files(github: GitHub, pull: int) -> list[ChangedFile]:
    return list(github.listed(ChangedFile, f"pulls/{pull}/files"))


def compared_files(github: GitHub, base: str, head: str) -> list[ChangedFile]:
    """Return what changes from one commit to another, at most `COMPARED_MAX` files."""
    return list(github.get(_Comparison, f"compare/{piece(base)}...{piece(head)}").files)


def pull_of(github: GitHub, number: int) -> Pull:
    return github.get(Pull, f"pulls/{number}")


def has_commit(github: GitHub, commit: str) -> bool:
    # GitHub answers 422 for a well-formed name that is not a commit.
    return github.find(_Commit, f"commits/{piece(commit)}", none=frozenset({404, 422})) is not None


def pulls_with(github: GitHub, commit: str) -> list[int]:
    """Return the numbers of the pull requests that contain a commit, or by which it was merged."""
    return [pull.number for pull in github.listed(_Number, f"commits/{piece(commit)}/pulls")]


def content_at(github: GitHub, path: str, ref: str) -> str | None:
    """Return a text file at a commit or branch, or None if it does not exist or is not text."""
    found = github.find(_Content, f"contents/{quoted(path)}", {"ref": ref})
    if found is None or found.type != "file" or found.encoding != "base64":
        return None
    try:
        return base64.b64decode(found.content).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def may_write(github: GitHub, login: str) -> bool:
    """Return whether that user may push to the repository; False if there is no such user."""
    if not _LOGIN.fullmatch(login):
        return False
    found = github.find(_Permission, f"collaborators/{piece(login)}/permission")
    return found is not None and (found.permission in WRITERS or found.role_name in WRITERS)
