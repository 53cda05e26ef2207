"""Installs the dependencies of the config package. The package itself is not built: its source is used in
place.

uv is used if it is on PATH: it finds or fetches the required Python, and selects the versions available on
the day of the commit. Only wheels are installed, because building runs the package author's code here with
network access. They go into a folder that no Python outside of the isolation uses.
"""

import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from datetime import date as Day
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from prime_train.errors import PermanentError, TemporaryError
from prime_train.trainers.prime_rl.validators.package_source import PROXIES
from prime_train.trainers.prime_rl.validators.process import Done, only, run

INSTALL_S_MAX = 900.0
_KEPT = (
    *("PATH", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *(
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_NO_INDEX",
        "PIP_CERT",
        "PIP_CONFIG_FILE",
        "PIP_CACHE_DIR",
    ),
    *(
        "UV_DEFAULT_INDEX",
        "UV_INDEX",
        "UV_INDEX_URL",
        "UV_FIND_LINKS",
        "UV_NO_INDEX",
        "UV_OFFLINE",
        "UV_CACHE_DIR",
        "UV_CONFIG_FILE",
    ),
    *("UV_PYTHON_INSTALL_DIR", "UV_PYTHON_DOWNLOADS", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"),
    *PROXIES,
)
_QUIET = ("--disable-pip-version-check", "--no-input")
_PLAIN = re.compile(
    r"[A-Za-z0-9][\w.-]*[ \t]*(\[[\w., \t-]*\])?[ \t]*\(?[ \t<>=!~,.*+\w]*\)?[ \t]*(;.*)?", re.ASCII
)
"""A requirement with a name, extras, versions and conditions, but without a URL, from which code would be
fetched and built.
"""
_VERSION = re.compile(r"(\d+)\.(\d+)")


class Needs(NamedTuple):
    python: str
    packages: tuple[str, ...]


def install(package: Path, environment: Path, packages: Path, date: str) -> None:
    """Create `environment` with the required Python, and install the dependencies into `packages`. `date` is
    the commit's.

    Raises PermanentError if there is no suitable Python or a dependency is not a plain package;
    TemporaryError if the packages cannot be installed now or it took too long.
    """
    needs = _needs(package)
    invalid = next((name for name in needs.packages if not _PLAIN.fullmatch(name)), None)
    if invalid is not None:
        raise PermanentError(
            f"prime-rl's config package needs {invalid[:80]!r}: only packages with a name and versions are "
            "installed here"
        )
    packages.mkdir()
    if shutil.which("uv") is not None:
        _with_uv(needs, environment, packages, date)
    else:
        _with_pip(needs, environment, packages)


def _needs(package: Path) -> Needs:
    try:
        project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return Needs(
            str(project.get("requires-python", "")),
            tuple(str(name) for name in project.get("dependencies", ())),
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise PermanentError(
            f"prime-rl's config package does not declare its dependencies: {type(error).__name__}"
        ) from error


def _with_uv(needs: Needs, environment: Path, packages: Path, date: str) -> None:
    wanted = sys.executable if _is_ours(needs.python) else needs.python
    _must(
        _run(("uv", "venv", "-q", "--python", wanted, environment.name), environment.parent),
        f"Python {needs.python}".strip(),
    )
    if not needs.packages:
        return
    command = (
        "uv",
        "pip",
        "install",
        "-q",
        "--no-build",
        "--python",
        f"{environment.name}/bin/python",
        "--target",
        packages.name,
    )
    then = ("--exclude-newer", str(Day.fromisoformat(date) + timedelta(days=1)))
    if _run((*command, *then, "--", *needs.packages), environment.parent).code != 0:
        # Not every index has upload times.
        _must(_run((*command, "--", *needs.packages), environment.parent), "its dependencies")


def _with_pip(needs: Needs, environment: Path, packages: Path) -> None:
    """Install with the pip of this process's Python: creating a pip in the environment would take longer than
    everything else.
    """
    _must(
        _run((_python(needs.python), "-m", "venv", "--without-pip", environment.name), environment.parent),
        "its environment",
    )
    if not needs.packages:
        return
    if find_spec("pip") is None:
        raise PermanentError(
            "neither uv nor pip is installed to install the dependencies of prime-rl's config package: "
            "install uv"
        )
    command = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        f"{environment.name}/bin/python",
        "install",
        "-q",
        *_QUIET,
    )
    install_command = (*command, "--only-binary", ":all:", "--target", packages.name)
    _must(_run((*install_command, "--", *needs.packages), environment.parent), "its dependencies")


def _python(wanted: str) -> str:
    """Return this process's Python if it is suitable, else one from PATH. Raises PermanentError if there is
    none.
    """
    if _is_ours(wanted):
        return sys.executable
    found = _VERSION.search(wanted)
    other = shutil.which(f"python{found[0]}") if found is not None else None
    if other is None:
        raise PermanentError(f"prime-rl's config package needs Python {wanted}: install uv, or that Python")
    return other


def _is_ours(wanted: str) -> bool:
    """Return whether this process's Python satisfies `wanted`, such as ~=3.12.0, ==3.12.* or >=3.11; an empty
    requirement accepts any.
    """
    found = _VERSION.search(wanted)
    if found is None:
        return True
    version = (int(found[1]), int(found[2]))
    return sys.version_info[:2] == version or (
        wanted.startswith(">=") and "," not in wanted and sys.version_info[:2] > version
    )


def _run(command: Sequence[str], folder: Path) -> Done:
    return run(command, only(_KEPT), INSTALL_S_MAX, folder=folder)


def _must(done: Done, what: str) -> None:
    if done.code != 0:
        raise TemporaryError(f"prime-rl's config package cannot be installed ({what}): {done.last_words}")
