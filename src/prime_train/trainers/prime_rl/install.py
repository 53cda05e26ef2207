"""Installation of prime-rl on a machine, at the commit that the spec names, in its own folder beside the working tree.

prime-rl is not published as a package. Its lock file pins all dependencies, so the commit alone determines the version. What the run needs
in addition, such as environments, is installed into the same place by the spec's own `setup` and is kept, because the launcher is run
without syncing.
"""

import shlex

from prime_train.core.spec import PrimeRlSpec

REPOSITORY = "https://github.com/PrimeIntellect-ai/prime-rl.git"
HOME = "../prime-rl"
"""Folder of prime-rl, relative to the working tree, where all commands are run."""

COMMIT_DIGITS = 40
"""Hex digits of a full commit hash."""

UV = ("env", 'PATH="$HOME/.local/bin:$PATH"', "uv")
_UV = " ".join(UV)
_NO_KEY = "url.https://github.com/.insteadOf=git@github.com:"
_INSTALLER = "https://astral.sh/uv/0.13.9/install.sh"
"""Installer of a pinned version of uv, the same that installs the agent; it contains the hashes of what it downloads."""


def install(part: PrimeRlSpec) -> tuple[str, ...]:
    """Return idempotent commands to run in the working tree before the spec's own `setup`."""
    ref, git = shlex.quote(part.ref), f"git -C {HOME}"
    return (
        f"{_UV} --version || (curl -LsSf --retry 3 --max-time 300 {_INSTALLER} | env UV_NO_MODIFY_PATH=1 sh)",
        f"git init -q {HOME}",
        f"{git} cat-file -e {ref}^{{commit}} 2>/dev/null || {_fetch(git, ref)}",
        f"{git} checkout -q --force --detach {ref}",
        # The addresses of its submodules are for SSH, which needs a key; use HTTPS instead.
        f"{git} -c {_NO_KEY} submodule update -q --init --recursive --depth 1",
        # Inexact, so that packages installed by `setup` in an earlier attempt are kept.
        f"{_UV} sync --project {HOME} --all-extras --frozen --inexact",
    )


def _fetch(git: str, ref: str) -> str:
    """Return the command that fetches a commit, if it is not there yet.

    A full hash is fetched alone, without history. An abbreviated hash has to be looked up in the history, which is fetched without file
    contents; those of the files that are checked out are fetched later.
    """
    if len(ref) == COMMIT_DIGITS:
        return f"{git} fetch -q --depth 1 {REPOSITORY} {ref}"
    settings = (f"remote.origin.url {REPOSITORY}", "remote.origin.promisor true", "remote.origin.partialclonefilter blob:none")
    configured = " && ".join(f"{git} config {setting}" for setting in settings)
    return f"{{ {configured} && {git} fetch -q --filter=blob:none origin 'refs/heads/*:refs/remotes/origin/*'; }}"
