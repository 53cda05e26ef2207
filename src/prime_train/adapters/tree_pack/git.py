"""What git knows of a folder or a repository. Without git, or outside a checkout, it knows nothing; that is no error."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from prime_train.ports import PermanentError, TemporaryError

GIT_S_MAX = 60
REMOTE_S_MAX = 30
SAID_CHARS_MAX = 200

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class Checkout:
    """A git checkout as it is now. `pushed`: a branch of some remote holds its commit."""

    commit: str
    is_dirty: bool
    is_pushed: bool
    remotes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The commit, marked where the files are not exactly its."""
        return f"{self.commit}-dirty" if self.is_dirty else self.commit


def files_of(folder: Path) -> list[str] | None:
    """Paths below `folder` that git tracks or would: nothing ignored. None where git does not know the folder."""
    listed = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return None
    return sorted({os.fsdecode(name) for name in listed.split(b"\0") if name})


def checkout_of(folder: Path) -> Checkout | None:
    """None where git does not know the folder, or it has no commit yet."""
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    dirty = _git(folder, "status", "--porcelain", "--", ".")
    holding = _git(folder, "branch", "--remotes", "--contains", "HEAD")
    remotes = _git(folder, "config", "--get-regexp", r"^remote\..*\.url$") or b""
    urls = tuple(line.split(" ", 1)[1] for line in remotes.decode(errors="replace").splitlines() if " " in line)
    return Checkout(head.decode().strip(), is_dirty=bool(dirty), is_pushed=bool(holding), remotes=urls)


def is_commit(ref: str) -> bool:
    return _COMMIT.fullmatch(ref) is not None


def commit_of(repo: str, ref: str | None) -> str:
    """The commit that `ref` (a branch or tag; None: the default branch) of a remote repository stands for now.

    TemporaryError: it could not be asked. PermanentError: there is no such ref.
    """
    names = [ref or "HEAD", f"refs/tags/{ref}^{{}}"] if ref else ["HEAD"]
    try:
        command = ["git", "ls-remote", "--", repo, *names]
        done = subprocess.run(command, capture_output=True, timeout=REMOTE_S_MAX, check=False, env=_quiet(), stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise PermanentError("git is not installed, so trainer.tree.repo can not be looked up") from error
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(f"{without_password(repo)} did not answer within {REMOTE_S_MAX} s") from error
    if done.returncode != 0:
        said = without_password(done.stderr.decode(errors="replace").strip())[:SAID_CHARS_MAX]
        raise TemporaryError(f"{without_password(repo)} can not be asked: {said}")
    rows = [line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines() if "\t" in line]
    found = {name: commit for commit, name in rows}
    # An annotated tag is an object of its own; `^{}` is the commit it stands for.
    wanted = (f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", f"refs/heads/{ref}") if ref else ("HEAD",)
    commit = next((found[name] for name in wanted if name in found), None)
    if commit is None:
        raise PermanentError(f"{without_password(repo)} has no branch or tag {ref!r}")
    return commit


def same_repository(one: str, other: str) -> bool:
    """Whether two addresses name the same repository: with or without .git, over https or ssh."""
    return _plain(one) == _plain(other)


def without_password(text: str) -> str:
    return _USERINFO.sub("", text)


def _plain(address: str) -> str:
    bare = re.sub(r"^(https?|ssh|git)://", "", address.strip()).split("@", 1)[-1]
    return bare.replace(":", "/", 1).removesuffix("/").removesuffix(".git").lower()


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git printed, or None where it failed. The checkout may belong to another user, as in a container."""
    command = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=off", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=GIT_S_MAX, check=False, env=_quiet(), stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(f"git {arguments[0]} took longer than {GIT_S_MAX} s in {folder}") from error
    return done.stdout if done.returncode == 0 else None


def _quiet() -> dict[str, str]:
    """Never asks for a password; takes no lock that another git may want."""
    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
