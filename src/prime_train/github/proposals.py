"""Propose files: a commit on a branch of its own, and a pull request. No clone is needed, and none is
touched.
"""

import hashlib
from collections.abc import Mapping

from prime_train.errors import PermanentError
from prime_train.github.api import GitHub, GitHubModel, piece, quoted

FILE_MODE = "100644"


class _Object(GitHubModel):
    sha: str


class _Ref(GitHubModel):
    object: _Object


class _Tree(GitHubModel):
    sha: str


class _Comparison(GitHubModel):
    ahead_by: int


class _Entry(GitHubModel):
    name: str
    sha: str
    type: str = ""


class _End(GitHubModel):
    ref: str
    sha: str = ""


class OpenPull(GitHubModel):
    """An open pull request. `head.ref`: the branch with the proposed commits."""

    number: int
    html_url: str
    head: _End


class About(GitHubModel):
    """The repository itself. `permissions`: what the user may do, by GitHub's words, such as admin."""

    full_name: str
    default_branch: str
    private: bool = False
    archived: bool = False
    permissions: Mapping[str, bool] = {}


class Me(GitHubModel):
    """The user with whose rights the requests are sent."""

    login: str
    id: int


def tip_of(github: GitHub, branch: str) -> str | None:
    """Return the newest commit of a branch; None if there is no such branch, or the repository is empty."""
    found = github.find(_Ref, f"git/ref/heads/{quoted(branch)}", none=frozenset({404, 409}))
    return found.object.sha if found is not None else None


def commit_at(github: GitHub, ref: str) -> str | None:
    """Return the commit that a tag, a branch or a part of a hash names; None if the repository or the ref
    does not exist, or is not visible.
    """
    found = github.find(_Object, f"commits/{piece(ref)}", none=frozenset({404, 409, 422}))
    return found.sha if found is not None else None


def files_in(github: GitHub, folder: str, ref: str) -> dict[str, str]:
    """Return the files that are directly in a folder, by name, with the hash of each; none if there is no
    such folder.
    """
    entries = github.find_list(_Entry, f"contents/{quoted(folder)}", {"ref": ref})
    return {entry.name: entry.sha for entry in entries if entry.type == "file"}


def hash_of(text: str) -> str:
    """Return the hash that git gives to a file with this text."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def is_merged(github: GitHub, branch: str, base: str) -> bool:
    """Return whether the branch has no commit that `base` lacks."""
    return github.get(_Comparison, f"compare/{piece(base)}...{piece(branch)}").ahead_by == 0


def commit_files(github: GitHub, parent: str, files: Mapping[str, str], message: str) -> str:
    """Create a commit that adds or replaces these files, after `parent`. It is on no branch yet. Return
    it.
    """
    entries = [
        {"path": path, "mode": FILE_MODE, "type": "blob", "content": text} for path, text in files.items()
    ]
    tree = github.send(_Tree, "POST", "git/trees", {"base_tree": parent, "tree": entries})
    return github.send(
        _Object, "POST", "git/commits", {"message": message, "tree": tree.sha, "parents": [parent]}
    ).sha


def set_branch(github: GitHub, branch: str, commit: str, *, is_new: bool) -> None:
    """Create a branch at the commit, or move it there; commits on it are never lost. Raises PermanentError if
    they would be.
    """
    if is_new:
        github.ask("POST", "git/refs", body={"ref": f"refs/heads/{branch}", "sha": commit})
    else:
        github.ask("PATCH", f"git/refs/heads/{quoted(branch)}", body={"sha": commit, "force": False})


def open_pull_of(github: GitHub, branch: str) -> OpenPull | None:
    """Return the open pull request from a branch of this repository, or None."""
    owner = github.repository.partition("/")[0]
    return github.newest(OpenPull, "pulls", {"state": "open", "head": f"{owner}:{branch}"})


def open_pull(github: GitHub, branch: str, base: str, title: str, body: str) -> OpenPull:
    """Open a pull request, and return it; the open one, if there is one from that branch."""
    try:
        return github.send(
            OpenPull, "POST", "pulls", {"title": title, "head": branch, "base": base, "body": body}
        )
    except PermanentError:
        found = open_pull_of(github, branch)
        if found is None:
            raise
        return found
