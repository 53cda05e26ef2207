"""Installed config packages, one folder per commit. Each appears complete or not at all; the most recently
used are kept.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import PermanentError

KEPT_MAX = 4
"""Number of packages kept; each takes half a gigabyte."""
DRAFT_S_MAX = 86_400
"""Seconds after which an unfinished installation counts as abandoned."""
PACKAGES = "packages"
_DRAFT = ".building-"


@dataclass(frozen=True)
class CachedPackage:
    """The package of one commit of prime-rl, with the environment in which it runs."""

    folder: Path

    @property
    def commit(self) -> str:
        return self.folder.name

    @property
    def source(self) -> Path:
        return self.folder / "package" / "src"

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The folder of the dependencies, outside of the environment, so that using the environment's Python
        alone runs nothing that was installed.
        """
        return self.folder / PACKAGES


@dataclass(frozen=True)
class PackageDraft:
    """A package being built; `scratch` is deleted afterwards."""

    scratch: Path
    root: Path

    @property
    def package(self) -> Path:
        return self.root / "package"

    @property
    def environment(self) -> Path:
        return self.root / "environment"

    @property
    def packages(self) -> Path:
        return self.root / PACKAGES


@dataclass(frozen=True)
class Cache:
    root: Path

    def find(self, ref: str) -> CachedPackage | None:
        """Return the cached package whose commit begins with `ref`, or None if there is none, more than one,
        or its Python no longer exists.
        """
        found = [CachedPackage(path) for path in self._folders() if path.name.startswith(ref)]
        usable = [
            cached for cached in found if os.access(cached.python, os.X_OK) and cached.packages.is_dir()
        ]
        return usable[0] if len(usable) == 1 else None

    @contextmanager
    def building(self) -> Iterator[PackageDraft]:
        self.root.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=self.root))
        try:
            (folder / "whole").mkdir()
            yield PackageDraft(folder, folder / "whole")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def keep(self, draft: PackageDraft, commit: str) -> CachedPackage:
        """Move the draft to its final place, unless another process was faster. Return the cached package."""
        if self.find(commit) is None:
            shutil.rmtree(self.root / commit, ignore_errors=True)
            # A failure mostly means that another process has just put the same package there.
            with suppress(OSError):
                draft.root.rename(self.root / commit)
        cached = self.find(commit)
        if cached is None:
            raise PermanentError(f"{self.root / commit} cannot be written to")
        oldest = sorted(self._folders(), key=lambda path: path.stat().st_mtime)[:-KEPT_MAX]
        left = [
            path for path in self.root.glob(f"{_DRAFT}*") if time.time() - path.stat().st_mtime > DRAFT_S_MAX
        ]
        for path in (*oldest, *left):
            shutil.rmtree(path, ignore_errors=True)
        return cached

    def _folders(self) -> list[Path]:
        try:
            return [path for path in self.root.iterdir() if path.is_dir() and not path.name.startswith(".")]
        except OSError:
            return []
