"""prime-rl's own validators: its config package at one commit, kept with its dependencies in a cache folder, and run on configs.

Code of that commit and of its dependencies is run here: isolated (`isolation`) and with a time limit. First, the commit must be on a branch
or tag of that very repository, because a host of forks serves any commit of any fork by its hash; and nothing is built or run while it is
fetched and installed. A run's environments are deferred: they are neither installed nor imported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prime_train.adapters.prime_rl_deep.asking import ask
from prime_train.adapters.prime_rl_deep.cache import Cache, Kept
from prime_train.adapters.prime_rl_deep.fetching import NoSuchCommit, fetch, whole_commit
from prime_train.adapters.prime_rl_deep.installing import install
from prime_train.core.config_tree import Plain
from prime_train.core.prime_rl.upstream import Refusal
from prime_train.ports import PermanentError

__all__ = ["CHECK_S_MAX", "Kept", "NoSuchCommit", "Validators"]

CHECK_S_MAX = 60.0


@dataclass(frozen=True)
class Validators:
    """The validators. `repository`: prime-rl's address; `folder`: the cache; `say` is called with a line of text before anything slow."""

    repository: str
    folder: Path
    say: Callable[[str], None]
    check_s_max: float = CHECK_S_MAX
    trusted: bool = False
    """Run without isolation, with all of this user's rights."""

    def at(self, ref: str) -> Kept:
        """Return the package of the commit that begins with `ref`; if it is cached, nothing is fetched or looked up.

        Raises NoSuchCommit; PermanentError if git is missing or the commit cannot be installed here; TemporaryError if the repository or a
        package index could not be reached.
        """
        cache = Cache(self.folder)
        kept = cache.find(ref)
        if kept is not None:
            return kept
        with _on_disk(), cache.building() as draft:
            self.say(f"prime-rl {ref[:12]}: fetching its config package")
            commit = whole_commit(self.repository, ref, draft.scratch)
            there = cache.find(commit) if commit != ref else None
            if there is not None:
                return there
            date = fetch(self.repository, commit, draft.package, draft.scratch)
            self.say(f"prime-rl {commit[:12]}: installing what its config package needs, once")
            install(draft.package, draft.environment, draft.packages, date)
            return cache.keep(draft, commit)

    def judge(self, kept: Kept, config: Plain) -> tuple[Refusal, ...]:
        """Return what the validators refuse in a config whose includes and arguments are already merged; empty if they accept it.

        Raises TemporaryError if they took too long, PermanentError if they cannot be loaded or gave no answer.
        """
        with suppress(OSError):
            # The most recently used are kept; a read-only cache can be used as well.
            kept.folder.touch()
        with _on_disk():
            return ask(kept, config, self.check_s_max, trusted=self.trusted)


@contextmanager
def _on_disk() -> Iterator[None]:
    """Convert an OSError, such as a full disk or a folder of another user, to PermanentError."""
    try:
        yield
    except OSError as error:
        raise PermanentError(f"{error.filename or 'the disk'} cannot be written to: {error.strerror}") from error
