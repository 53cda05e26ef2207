"""Provides the environment that the config's `image` describes: that of the machine's image if it holds just
this one, else installed now.

An environment in the image is recognised by the hash of what it was installed from, and used only if each of
its files has the hash that was recorded when the image was built, and there is no other file. It stays as it
is: the working tree gets a virtual environment of its own above it, into which `setup` may install more.
"""

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prime_agent.before_training.phase import Called, PhaseError, Shell
from prime_agent.before_training.setup import set_up
from prime_agent.before_training.venv_above import put_packages_above, put_programs
from prime_train.spec.causes import Cause
from prime_train.spec.image_contents import ENVIRONMENT, FOLDER, LINKS, SUMS, digest_of, environment_files
from prime_train.spec.spec import ImageSpec, RunSpec

VENV = ".venv"
VENV_S_MAX = 120.0


def is_described(image: ImageSpec | None) -> bool:
    """Return whether the config describes an environment."""
    return image is not None and bool(image.requirements or image.packages)


def on_path(spec: RunSpec, work: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which commands find the programs of the environment first."""
    if spec.image is None or not spec.image.requirements:
        return dict(env)
    venv = work / VENV
    return {**env, "PATH": f"{venv / 'bin'}:{env.get('PATH', os.defpath)}", "VIRTUAL_ENV": str(venv)}


def provide(
    image: ImageSpec,
    shell: Shell,
    *,
    timeout_s: int,
    note: Callable[[str], None],
    folder: Path = Path(FOLDER),
) -> None:
    """Provide the environment in the working tree. `folder`: where images hold environments.

    Raises PhaseError if it cannot be installed, and Called if the phase is cancelled.
    """
    try:
        digest = digest_of(environment_files(image, lambda name: (shell.cwd / name).read_bytes()))
    except OSError as error:
        raise PhaseError(
            Cause.SETUP_FAILED, f"the requirements of the image, {error.filename}: {error.strerror}"
        ) from error
    made = folder / f"{ENVIRONMENT}-{digest}"
    note(f"checking whether the machine's image has the environment {digest}")
    why = why_unusable(made, shell)
    if why is None:
        note(f"the machine's image has the environment {digest}, every file of it as built")
        if image.requirements:
            _put_above(made / "venv", shell)
        return
    note(f"installing the environment {digest}, because {why}")
    set_up(install_commands(image), shell, timeout_s=timeout_s, note=note)


def install_commands(image: ImageSpec) -> tuple[str, ...]:
    """Return the commands that install the environment in the working tree of a machine whose image does not
    have it. Packages get the version that the machine's system has, which may be another one than the
    image's.
    """
    commands = []
    names = " ".join(shlex.quote(name.partition("=")[0]) for name in image.packages)
    if names:
        commands.append(
            f"missing=''; for name in {names}; do "
            """dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q ' installed$' || missing="$missing $name"; done; """
            """[ -z "$missing" ] || { root=''; [ "$(id -u)" = 0 ] || root='sudo -n'; $root apt-get update -qq && """
            "$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "
            "$missing; }"
        )
    if image.requirements:
        requirements = " ".join(f"-r {shlex.quote(name)}" for name in image.requirements)
        python = f"{VENV}/bin/python"
        # uv was fetched to this folder of the agent if the machine's Python is too old.
        commands.append(
            'PATH="$PATH:$HOME/.local/bin:$HOME/.prime-train/bin"; unset VIRTUAL_ENV; if command -v uv '
            ">/dev/null; "
            f"then uv venv --quiet --seed --python '>=3.11' {VENV} && "
            f"uv pip install --quiet --python {python} --require-hashes {requirements}; "
            f"else {shlex.quote(sys.executable)} -m venv {VENV} && "
            f"{python} -m pip install --quiet --disable-pip-version-check --no-input --require-hashes "
            f"{requirements}; fi"
        )
    return tuple(commands)


# ------------------------------------------------------------------------------------------------------------
# what the image has


def why_unusable(made: Path, called_off: Shell | None = None) -> str | None:
    """Return why the folder is not an environment as it was built, or None. Raises Called if the phase is
    cancelled.
    """
    try:
        recorded = {path: digest for digest, path in map(_split, (made / SUMS).read_text().splitlines())}
        links = set((made / LINKS).read_text().splitlines())
    except FileNotFoundError:
        return f"the image has no {made}"
    except (OSError, ValueError) as error:
        return f"{made} cannot be read: {error}"
    try:
        found = dict(_found(made))
        if links != {f"{path} -> {target}" for path, target in found.items() if target}:
            return f"symbolic links in {made} were changed"
        files = {
            path
            for path, target in found.items()
            if not target and not (path not in recorded and _is_cache(path))
        }
        if files != recorded.keys():
            return f"{min(files ^ recorded.keys())} was added to {made}, or removed"
        for path, digest in _hashed(made, sorted(files)):
            if called_off is not None and called_off.called_off():
                raise Called
            if digest != recorded[path]:
                return f"{path} in {made} was changed"
    except OSError as error:
        return f"{made} cannot be read: {error}"
    return None


def _is_cache(path: str) -> bool:
    """Return whether a file that is new is a cache of compiled functions, as numba writes them beside
    modules, and not a module.
    """
    return "/__pycache__/" in path and path.endswith((".nbi", ".nbc"))


def _split(line: str) -> tuple[str, str]:
    digest, _, path = line.partition("  ")
    if len(digest) != hashlib.sha256().digest_size * 2 or not path:
        raise ValueError(f"{SUMS} has the line {line[:100]!r}")
    return digest, path


def _found(made: Path) -> Iterator[tuple[str, str]]:
    """Yield the path of each file and symbolic link, with the link's target; empty for a file."""
    folders = ["files", *(["venv"] if (made / "venv").exists() else [])]
    while folders:
        folder = folders.pop()
        with os.scandir(made / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_symlink():
                    yield path, str(Path(entry.path).readlink())
                elif entry.is_dir():
                    folders.append(path)
                else:
                    yield path, ""


def _hashed(made: Path, paths: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each path with the SHA-256 of the file; several are read at a time, because they may be
    gigabytes.
    """

    def digest(path: str) -> str:
        with (made / path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
    try:
        yield from zip(paths, pool.map(digest, paths), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


# ---------------------------------------------------------------------------------------------- the
# environment of the working tree


def _put_above(below: Path, shell: Shell) -> None:
    """Make a virtual environment in the working tree that also has what is installed in `below`, including
    its programs.
    """
    command = f"{shlex.quote(str(below / 'bin' / 'python'))} -m venv --without-pip --clear {VENV}"
    ended = shell.run(command, name="environment", timeout_s=VENV_S_MAX)
    if ended.code != 0:
        raise PhaseError(Cause.SETUP_FAILED, f"`{command}` ended with code {ended.code}", log_tail=ended.tail)
    venv = shell.cwd / VENV
    (there,) = below.glob("lib/python*/site-packages")
    put_packages_above(there, venv)
    put_programs((below / "bin").iterdir(), below / "bin", venv)
