"""Git's data about a folder or a repository. Without git, or outside a checkout, there is none, which is not
an error.

A repository's own configuration names programs that git runs: hooks, file system monitors, filters, helpers
of transports. None of them is run here, because the configuration may be another person's. Whether to trust a
repository that belongs to another user at all is git's own check (`safe.directory`) and the user's decision,
so that check is not overridden either.
"""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import PermanentError, TemporaryError

GIT_S_MAX = 60
REMOTE_S_MAX = 30
MESSAGE_CHARS_MAX = 200

_NOTHING_OF_THEIRS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.gitProxy=",
    "credential.helper=",
    "diff.external=",
)
"""Settings that replace those of a repository. The repository's filters, whose names cannot be known here,
are handled by `_filters_off`.
"""
_PLACES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
_PLACES |= {"GIT_EXTERNAL_DIFF", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"}
"""Variables that make git use a repository other than the folder's own; git sets them while it runs a
hook.
"""
_TRANSPORTS = "file:git:http:https:ssh"
"""Protocols that git may use. `ext::`, which runs a command, and helpers that a repository defines are
excluded.
"""
_NOT_OURS = ("dubious ownership", "unsafe repository")
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class Checkout:
    """A git checkout as it is now. `is_pushed`: a branch of some remote contains its commit."""

    commit: str
    is_dirty: bool
    is_pushed: bool
    remotes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The commit, with a suffix if the files differ from it."""
        return f"{self.commit}-dirty" if self.is_dirty else self.commit


def files_of(folder: Path) -> list[str] | None:
    """Return the paths below `folder` that git tracks or would track, without ignored ones; None if `folder`
    is not in a git checkout.

    Raises PermanentError if the repository belongs to another user.
    """
    listed = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return None
    return sorted({os.fsdecode(name) for name in listed.split(b"\0") if name})


def tracked_files(folder: Path) -> frozenset[str] | None:
    """Return the paths below `folder` that git tracks; None if `folder` is not in a git checkout. Raises
    PermanentError if the repository belongs to another user.
    """
    listed = _git(folder, "ls-files", "-z", "--cached")
    return None if listed is None else frozenset(os.fsdecode(name) for name in listed.split(b"\0") if name)


def checkout_of(folder: Path) -> Checkout | None:
    """Return the checkout that contains `folder`; None if there is none, or it has no commit yet. Raises
    PermanentError if the repository belongs to another user.
    """
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    # The commit checked out in a nested repository counts; changes inside it are not inspected, because that
    # would use its own settings.
    dirty = _git(
        folder, "status", "--porcelain", "--ignore-submodules=dirty", "--", ".", settings=_filters_off(folder)
    )
    holding = _git(folder, "branch", "--remotes", "--contains", "HEAD")
    remotes = _git(folder, "config", "--get-regexp", r"^remote\..*\.url$") or b""
    urls = tuple(
        line.split(" ", 1)[1] for line in remotes.decode(errors="replace").splitlines() if " " in line
    )
    return Checkout(head.decode().strip(), is_dirty=bool(dirty), is_pushed=bool(holding), remotes=urls)


def is_commit(ref: str) -> bool:
    return _COMMIT.fullmatch(ref) is not None


def commit_of(repo: str, ref: str | None) -> str:
    """Return the commit to which `ref` (a branch or tag; None: the default branch) of a remote repository
    points now.

    Raises TemporaryError if the repository cannot be reached, PermanentError if there is no such ref or git
    is not installed.
    """
    names = [ref or "HEAD", f"refs/tags/{ref}^{{}}"] if ref else ["HEAD"]
    try:
        command = ["git", "ls-remote", "--", repo, *names]
        with tempfile.TemporaryDirectory() as nowhere:
            # Not in the current folder: the settings of its repository would be used to reach the other one.
            environment = _quiet() | {
                "GIT_CEILING_DIRECTORIES": str(Path(nowhere).parent),
                "GIT_ALLOW_PROTOCOL": _TRANSPORTS,
            }
            done = subprocess.run(
                command,
                cwd=nowhere,
                capture_output=True,
                timeout=REMOTE_S_MAX,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
    except FileNotFoundError as error:
        raise PermanentError("git is not installed, so trainer.code.repo cannot be looked up") from error
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(f"{without_password(repo)} did not answer within {REMOTE_S_MAX} s") from error
    if done.returncode != 0:
        message = without_password(done.stderr.decode(errors="replace").strip())[:MESSAGE_CHARS_MAX]
        raise TemporaryError(f"{without_password(repo)} cannot be queried: {message}")
    rows = [line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines() if "\t" in line]
    found = {name: commit for commit, name in rows}
    # An annotated tag is an object of its own; `^{}` is the commit it points to.
    wanted = (f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", f"refs/heads/{ref}") if ref else ("HEAD",)
    commit = next((found[name] for name in wanted if name in found), None)
    if commit is None:
        raise PermanentError(f"{without_password(repo)} has no branch or tag {ref!r}")
    return commit


def same_repository(one: str, other: str) -> bool:
    """Return whether two addresses name the same repository: with or without .git, over https or ssh."""
    return _plain(one) == _plain(other)


def without_password(text: str) -> str:
    return _USERINFO.sub("", text)


def _plain(address: str) -> str:
    bare = re.sub(r"^(https?|ssh|git)://", "", address.strip()).split("@", 1)[-1]
    return bare.replace(":", "/", 1).removesuffix("/").removesuffix(".git").lower()


def _filters_off(folder: Path) -> list[str]:
    """Return settings that turn every configured filter into one that changes nothing."""
    named = _git(folder, "config", "--name-only", "-z", "--get-regexp", _FILTERS) or b""
    keys = sorted({os.fsdecode(key) for key in named.split(b"\0") if key})
    # A name with a line break or an equals sign cannot be overridden on a command line, so such a filter is
    # refused.
    invalid = [key for key in keys if "=" in key or "\n" in key]
    if invalid:
        raise PermanentError(
            f"{folder}: its git configuration has a filter with the unusual name {invalid[0]!r}; remove the "
            "filter"
        )
    return [f"{key}={'false' if key.endswith('.required') else ''}" for key in keys]


def _git(folder: Path, *arguments: str, settings: Sequence[str] = ()) -> bytes | None:
    """Return git's output, or None if it failed. Raises PermanentError if git does not trust the repository,
    as it belongs to another user.
    """
    laid_over = [
        word for setting in (*_NOTHING_OF_THEIRS, *settings, "core.quotePath=off") for word in ("-c", setting)
    ]
    # No transport at all: missing parts of a partial clone would be fetched by a helper of the repository's
    # choice.
    environment = _quiet() | {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    try:
        done = subprocess.run(
            ["git", "--no-pager", *laid_over, *arguments],
            cwd=folder,
            capture_output=True,
            timeout=GIT_S_MAX,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(f"git {arguments[0]} took longer than {GIT_S_MAX} s in {folder}") from error
    if done.returncode != 0 and any(sign in done.stderr.decode(errors="replace") for sign in _NOT_OURS):
        where = folder.resolve()
        raise PermanentError(
            f"the git repository of {where} belongs to another user, who may have written programs into its "
            "configuration; "
            f"if you trust it: git config --global --add safe.directory {shlex.quote(str(where))} (the "
            "folder that holds .git)"
        )
    return done.stdout if done.returncode == 0 else None


def _quiet() -> dict[str, str]:
    """Return an environment in which git never asks for a password, and takes no lock that another git may
    need.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _PLACES}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
