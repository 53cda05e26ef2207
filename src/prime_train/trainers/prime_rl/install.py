"""Putting prime-rl on a machine, at the commit a spec names, in a folder of its own beside the working tree.

It is not published as a package. Its lock file pins everything below it, so a commit is the whole of its version. What the run needs on
top, such as environments, is installed into the same place by the spec's own `setup`, and stays there: the launcher is run without syncing.
"""

import shlex

from prime_train.core.spec import RunSpec

REPOSITORY = "https://github.com/PrimeIntellect-ai/prime-rl.git"
HOME = "../prime-rl"
COMMIT_DIGITS = 40
"""Seen from the working tree, where all commands are run."""

UV = ("env", 'PATH="$HOME/.local/bin:$PATH"', "uv")
_UV = " ".join(UV)
_NO_KEY = "url.https://github.com/.insteadOf=git@github.com:"
_INSTALLER = "https://astral.sh/uv/0.13.9/install.sh"
"""Of one version, the same one that the agent is installed by: it holds the hashes of what it fetches."""


def install(spec: RunSpec) -> tuple[str, ...]:
    """Commands to be run in the working tree before the spec's own `setup`, each of them again and again; none for other kinds."""
    part = spec.trainer.prime_rl
    if part is None:
        return ()
    ref, git = shlex.quote(part.ref), f"git -C {HOME}"
    return (
        f"{_UV} --version || (curl -LsSf --retry 3 --max-time 300 {_INSTALLER} | env UV_NO_MODIFY_PATH=1 sh)",
        f"git init -q {HOME}",
        f"{git} cat-file -e {ref}^{{commit}} 2>/dev/null || {_fetch(git, ref)}",
        f"{git} checkout -q --force --detach {ref}",
        # Its submodules are named by addresses that only people with a key there can use.
        f"{git} -c {_NO_KEY} submodule update -q --init --recursive --depth 1",
        # Inexact: what `setup` of an earlier attempt has put there is no reason to do it all again.
        f"{_UV} sync --project {HOME} --all-extras --frozen --inexact",
    )


def _fetch(git: str, ref: str) -> str:
    """A commit can be fetched by itself, without the history; one of which only the first digits are known must be looked for there, in
    a history without files, of which those that are checked out are fetched then. What is there already is not fetched again."""
    if len(ref) == COMMIT_DIGITS:
        return f"{git} fetch -q --depth 1 {REPOSITORY} {ref}"
    settings = (f"remote.origin.url {REPOSITORY}", "remote.origin.promisor true", "remote.origin.partialclonefilter blob:none")
    configured = " && ".join(f"{git} config {setting}" for setting in settings)
    return f"{{ {configured} && {git} fetch -q --filter=blob:none origin 'refs/heads/*:refs/remotes/origin/*'; }}"
