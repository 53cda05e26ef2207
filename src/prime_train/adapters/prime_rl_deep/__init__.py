"""prime-rl's own validators: its config package at one commit, kept with what it needs in a cache folder, and asked about configs.

Code of that commit is run here, and of the packages it asks for: behind walls (`isolation`), for so long and no longer. Before it is, the
commit must be on a branch or tag of that very repository, for a host of forks gives out any commit of any fork by its name; and nothing is
built or run while it is fetched and installed. Environments of a run are deferred: they are neither installed nor imported.
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
    """`repository`: prime-rl's; `folder`: the cache; `say`: is told what takes long, in a line."""

    repository: str
    folder: Path
    say: Callable[[str], None]
    check_s_max: float = CHECK_S_MAX
    trusted: bool = False
    """Run without walls, with all that is this user's."""

    def at(self, ref: str) -> Kept:
        """Those of the commit that begins with `ref`: nothing is fetched or looked up that is in the cache.

        NoSuchCommit; PermanentError: git is missing, or that commit cannot be installed here. TemporaryError: the repository, or
        whatever is installed, could not be reached.
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
        """What they refuse of a config, includes and arguments laid into it; nothing: they take it.

        TemporaryError: they took too long. PermanentError: they cannot be loaded, or gave no answer.
        """
        with suppress(OSError):
            # Those used last are kept; a cache that cannot be written to is as good for reading.
            kept.folder.touch()
        with _on_disk():
            return ask(kept, config, self.check_s_max, trusted=self.trusted)


@contextmanager
def _on_disk() -> Iterator[None]:
    """A disk that is full, or a folder that is not ours, is a failure of the outside as any other."""
    try:
        yield
    except OSError as error:
        raise PermanentError(f"{error.filename or 'the disk'} cannot be written to: {error.strerror}") from error
