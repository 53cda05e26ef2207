"""Installation of prime-rl on a machine, at the commit that the spec names, in its own folder beside the
working tree.

prime-rl is not published as a package. Its lock file pins all dependencies, so the commit alone determines
the version. What the run needs in addition, such as environments, is installed into the same place by the
spec's own `setup` and is kept, because the launcher is run without syncing.
"""

import shlex

from prime_train.spec.spec import PrimeRlSpec

REPOSITORY = "https://github.com/PrimeIntellect-ai/prime-rl.git"
HOME = "../prime-rl"
"""Folder of prime-rl, relative to the working tree, where all commands are run."""

INDEX = "https://hub.primeintellect.ai/{owner}/simple/"
"""The packages of an owner on Prime's hub of environments."""
COMMIT_DIGITS = 40
"""Hex digits of a full commit hash."""

UV = ("env", 'PATH="$HOME/.local/bin:$PATH"', "uv")
_UV = " ".join(UV)
_NO_KEY = "url.https://github.com/.insteadOf=git@github.com:"
UV_ARCHIVES = "https://github.com/astral-sh/uv/releases/download/0.12.5"
UV_SHA256 = {
    "x86_64": "a4742988791c9aeae68c78150d6cba762062ad2a47e53738c2779d2b596bfcdb",
    "aarch64": "8767a0e77f2cd45436401b1b42bf7e9ed5a4a91a74a5305d6fe93249d0f6dbc5",
}
"""Hashes of the archives of one version of uv, the same that installs the agent, by processor. (The release's
own, as the action astral-sh/setup-uv lists them, read November 2026.)
"""


def install(part: PrimeRlSpec) -> tuple[str, ...]:
    """Return idempotent commands to run in the working tree before the spec's own `setup`."""
    ref, git = shlex.quote(part.ref), f"git -C {HOME}"
    return (
        f"{_UV} --version || {{ {_fetch_uv()}; }}",
        f"git init -q {HOME}",
        f"{git} cat-file -e {ref}^{{commit}} 2>/dev/null || {_fetch(git, ref)}",
        f"{git} checkout -q --force --detach {ref}",
        # The addresses of its submodules are for SSH, which needs a key; use HTTPS instead.
        f"{git} -c {_NO_KEY} submodule update -q --init --recursive --depth 1",
        # Inexact, so that packages installed by `setup` in an earlier attempt are kept.
        f"{_UV} sync --project {HOME} --all-extras --frozen --inexact",
    )


def install_own_environment(name: str) -> str:
    """Return the command for `setup` that installs an environment of prime-rl's workspace, at the versions of its
    lock file: `uv sync --all-extras` installs none of them. (README.md of 559b4477.)
    """
    return f"{_UV} sync --project {HOME} --frozen --inexact --package {shlex.quote(name)}"


def install_hub_environment(owner: str, name: str, version: str = "") -> str:
    """Return the command for `setup` that installs an environment of Prime's hub. `version`: empty: the newest."""
    package = f"{name}=={version}" if version else name
    index = shlex.quote(INDEX.format(owner=owner))
    return (
        f"{_UV} pip install --python {HOME}/.venv/bin/python {shlex.quote(package)} --extra-index-url {index}"
    )


def _fetch_uv() -> str:
    """Return the command that installs uv for this user, if the archive has its hash."""
    sums = " ".join(f"{kind}) sum={digest} ;;" for kind, digest in UV_SHA256.items())
    archive, folder = '"$HOME/uv.tar.gz"', '"$HOME/.local/bin"'
    return " && ".join(
        (
            f'case $(uname -m) in {sums} *) echo "no uv is known for this processor"; false ;; esac',
            f'curl -LsSf --retry 3 --max-time 300 -o {archive} "{UV_ARCHIVES}/uv-$(uname '
            '-m)-unknown-linux-musl.tar.gz"',
            'echo "$sum  $HOME/uv.tar.gz" | sha256sum -c',
            f"mkdir -p {folder} && tar -xzf {archive} --strip-components 1 -C {folder} && rm {archive}",
        )
    )


def _fetch(git: str, ref: str) -> str:
    """Return the command that fetches a commit, if it is not there yet.

    A full hash is fetched alone, without history. An abbreviated hash has to be looked up in the history,
    which is fetched without file contents; those of the files that are checked out are fetched later.
    """
    if len(ref) == COMMIT_DIGITS:
        return f"{git} fetch -q --depth 1 {REPOSITORY} {ref}"
    settings = (
        f"remote.origin.url {REPOSITORY}",
        "remote.origin.promisor true",
        "remote.origin.partialclonefilter blob:none",
    )
    configured = " && ".join(f"{git} config {setting}" for setting in settings)
    return (
        f"{{ {configured} && {git} fetch -q --filter=blob:none "
        "origin "
        f"'refs/heads/*:refs/remotes/origin/*'; }}"
    )
