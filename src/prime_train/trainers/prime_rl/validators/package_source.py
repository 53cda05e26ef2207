"""Fetches the config package of prime-rl at one commit by git, without history and without files outside of
the package.
"""

from pathlib import Path

from prime_train.errors import PermanentError, TemporaryError
from prime_train.trainers.prime_rl.validators.process import Done, only, run

PACKAGE = "packages/prime-rl-configs"
FETCH_S_MAX = 180.0
_REFS = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/remotes/tags/*")

_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
PROXIES = (*_PROXIES, *(name.lower() for name in _PROXIES))
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
_ABSENT = (
    *("not our ref", "couldn't find remote ref", "not a valid object name", "unknown revision"),
    *("Needed a single revision", "no such commit"),
)
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
)
"""Git settings for fetching. Symbolic links of the commit are written as plain files, so that what they point
to on this machine is not read.
"""


class NoSuchCommit(PermanentError):
    """The repository has no such commit."""


def full_commit(repository: str, ref: str, scratch: Path) -> str:
    """Return the full hash of the commit that begins with `ref`. Raises NoSuchCommit if no branch or tag of
    the repository contains such a commit.
    """
    # the history without any of its files
    _git(repository, scratch, "init", "-q", "history")
    history = scratch / "history"
    _git(repository, history, "remote", "add", "origin", repository)
    _git(repository, history, "fetch", "-q", "--filter=tree:0", "--no-tags", "origin", *_REFS)
    found = _git(repository, history, "rev-parse", "--verify", "-q", f"{ref}^{{commit}}", absent=ref)
    commit = found.out.strip()
    # Existence is not enough: git fetches missing commits by hash, and a host of forks has the commits of all
    # forks.
    leading = _git(repository, history, "for-each-ref", "--count=1", "--contains", commit, absent=ref)
    if not leading.out.strip():
        raise NoSuchCommit(_no_commit(ref))
    return commit


def fetch(repository: str, commit: str, package: Path, scratch: Path) -> str:
    """Put the package at `package`, which must not exist yet. Return the date of the commit, such as
    2026-08-21.
    """
    _git(repository, scratch, "init", "-q", "tree")
    tree = scratch / "tree"
    _git(repository, tree, "remote", "add", "origin", repository)
    _git(repository, tree, "sparse-checkout", "set", "--no-cone", f"/{PACKAGE}/")
    _git(
        repository,
        tree,
        "fetch",
        "-q",
        "--depth=1",
        "--filter=blob:none",
        "--no-tags",
        "origin",
        commit,
        absent=commit,
    )
    _git(repository, tree, "-c", "advice.detachedHead=false", "checkout", "-q", "--detach", commit)
    if not (tree / PACKAGE / "pyproject.toml").is_file():
        raise PermanentError(
            f"prime-rl {commit[:12]} has no {PACKAGE}, so its validators cannot be run separately"
        )
    (tree / PACKAGE).rename(package)
    return _git(repository, tree, "show", "-s", "--format=%cs", commit).out.strip()


def _git(repository: str, folder: Path, *words: str, absent: str = "") -> Done:
    environment = only((*_KEPT, *PROXIES)) | _QUIET
    done = run(
        ["git", *(word for setting in _SETTINGS for word in ("-c", setting)), *words],
        environment,
        FETCH_S_MAX,
        folder=folder,
    )
    if done.code == 0:
        return done
    if absent and (not done.err or any(sign in done.err for sign in _ABSENT)):
        raise NoSuchCommit(_no_commit(absent))
    raise TemporaryError(f"{repository} cannot be fetched: {done.last_words}")


def _no_commit(ref: str) -> str:
    return f"no branch or tag of prime-rl contains the commit {ref}"
