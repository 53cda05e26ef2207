"""prime-rl's own validators: its config package at one commit, kept with its dependencies in a cache folder, and run on configs.

Code of that commit and of its dependencies is run here: isolated (`isolation`) and with a time limit. First, the commit must be on a branch
or tag of that very repository, because a host of forks serves any commit of any fork by its hash; and nothing is built or run while it is
fetched and installed. A run's environments are deferred: they are neither installed nor imported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.spec.tree import Plain
from prime_train.spec.upstream import Refusal
from prime_train.trainers.prime_rl.validators.cache import Cache, CachedPackage
from prime_train.trainers.prime_rl.validators.dependencies import install
from prime_train.trainers.prime_rl.validators.isolated_call import ask
from prime_train.trainers.prime_rl.validators.package_source import NoSuchCommit, fetch, full_commit

__all__ = ["CHECK_S_MAX", "CachedPackage", "NoSuchCommit", "Validators"]

CHECK_S_MAX = 60.0


@dataclass(frozen=True)
class Validators:
    """The validators. `repository`: prime-rl's address; `folder`: the cache; `progress` is called with a line of text before anything
    slow."""

    repository: str
    folder: Path
    progress: Callable[[str], None]
    check_s_max: float = CHECK_S_MAX
    trusted: bool = False
    """Whether the validators run without isolation, with all of this user's rights."""

    def at(self, ref: str) -> CachedPackage:
        """Return the package of the commit that begins with `ref`; if it is cached, nothing is fetched or looked up.

        Raises NoSuchCommit; PermanentError if git is missing or the commit cannot be installed here; TemporaryError if the repository or a
        package index could not be reached.
        """
        cache = Cache(self.folder)
        cached = cache.find(ref)
        if cached is not None:
            return cached
        with _on_disk(), cache.building() as draft:
            self.progress(f"prime-rl {ref[:12]}: fetching its config package")
            commit = full_commit(self.repository, ref, draft.scratch)
            there = cache.find(commit) if commit != ref else None
            if there is not None:
                return there
            date = fetch(self.repository, commit, draft.package, draft.scratch)
            self.progress(f"prime-rl {commit[:12]}: installing the dependencies of its config package (once)")
            install(draft.package, draft.environment, draft.packages, date)
            return cache.keep(draft, commit)

    def judge(self, cached: CachedPackage, config: Plain) -> tuple[Refusal, ...]:
        """Return what the validators refuse in a config whose includes and arguments are already merged; empty if they accept it.

        Raises TemporaryError if they took too long, PermanentError if they cannot be loaded or gave no answer.
        """
        with suppress(OSError):
            # The most recently used are kept; a read-only cache can be used as well.
            cached.folder.touch()
        with _on_disk():
            return ask(cached, config, self.check_s_max, trusted=self.trusted)


@contextmanager
def _on_disk() -> Iterator[None]:
    """Convert an OSError, such as a full disk or a folder of another user, to PermanentError."""
    try:
        yield
    except OSError as error:
        raise PermanentError(f"{error.filename or 'the disk'} cannot be written to: {error.strerror}") from error
