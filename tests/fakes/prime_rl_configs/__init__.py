"""A repository with a config package where prime-rl has its own: a few settings and validators, and some that
misbehave.

Its only dependency is the package `led-to-these-tests`, a wheel with the pydantic of these tests: it is
installed like any other, from a folder, because nothing of these tests is visible in the isolation.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.trainers.prime_rl.validators.validators import walled

PACKAGE = "packages/prime-rl-configs"
UPSTREAM = "https://github.com/PrimeIntellect-ai/prime-rl.git"
_LENT = ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py")
_HERE = Path(__file__).parent / "package"
_AUTHOR = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
_PROJECT = """\
[project]
name = "prime-rl-configs"
version = "0.1.0"
requires-python = "=={}.{}.*"
dependencies = ["led-to-these-tests>=1"]
"""


@dataclass(frozen=True)
class Repository:
    """A repository. `commit`: the newest, which has the package; `older`: one without it; `fork`: one like
    the newest that is on no branch or tag.
    """

    folder: Path
    commit: str
    older: str
    fork: str

    @property
    def wheels(self) -> Path:
        return self.folder.parent / "wheels"

    def env(self, home: Path, cache: Path) -> dict[str, str]:
        """Return the environment of a process that finds this repository in place of prime-rl's, and installs
        from a folder alone.
        """
        home.mkdir(exist_ok=True)
        (home / ".gitconfig").write_text(f'[url "{self.folder.as_uri()}"]\n\tinsteadOf = {UPSTREAM}\n')
        found = {
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.wheels),
            "UV_OFFLINE": "1",
        }
        return {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(cache),
            **found,
        }


@cache
def has_walls() -> bool:
    """Return whether code of a commit can be isolated on this machine."""
    try:
        return bool(walled(["true"], ()))
    except PermanentError:
        return False


def make(folder: Path) -> Repository:
    tree = folder / "prime-rl"
    tree.mkdir(parents=True)
    _git(tree, "init", "-q")
    _git(tree, "config", "uploadpack.allowFilter", "true")
    # As a host of forks does, which has the commits of all of them in one place.
    _git(tree, "config", "uploadpack.allowAnySHA1InWant", "true")
    (tree / "README.md").write_text("the trainer itself\n")
    older = _commit(tree)
    shutil.copytree(_HERE, tree / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / PACKAGE / "pyproject.toml").write_text(_PROJECT.format(*sys.version_info[:2]))
    newest = _commit(tree)
    fork = _git(tree, "commit-tree", "-p", newest, "-m", "a stranger's", f"{newest}^{{tree}}")
    repository = Repository(tree, newest, older, fork)
    _wheel(repository.wheels)
    return repository


def _commit(tree: Path) -> str:
    _git(tree, "add", ".")
    _git(tree, "commit", "-q", "-m", "x")
    return _git(tree, "rev-parse", "HEAD")


def _git(tree: Path, *words: str) -> str:
    env = {**os.environ, **_AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(
        ["git", *words], cwd=tree, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def _wheel(folder: Path) -> None:
    folder.mkdir()
    name, about = "led_to_these_tests", "led_to_these_tests-1.0.dist-info"
    here = Path(sysconfig.get_path("purelib"))
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for package in _LENT:
            found = [here / package] if (here / package).is_file() else sorted((here / package).rglob("*"))
            for file in found:
                if file.is_file() and "__pycache__" not in file.parts:
                    wheel.write(file, str(file.relative_to(here)))
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(
            f"{about}/RECORD", "".join(f"{file},,\n" for file in wheel.namelist()) + f"{about}/RECORD,,\n"
        )
