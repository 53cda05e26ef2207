"""Checks which account the key belongs to. With another account's key, all machines would appear deleted:
they would be rented again on that account, and still be paid for on the first one.

The account is stored just before a machine is rented, never by a query: a user who only lists machines for
rent, with a key of their own, must not replace the account that rents.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from prime_train.buckets.keys import parse_pod_name
from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.rental.reasons import short
from prime_train.runs.store import Store
from prime_train.runs.unreadable import may_have_machine

WRITES_MAX = 10


class Memory(Protocol):
    """Storage of the account that machines were rented with. Every method raises ExternalError."""

    def read(self) -> str:
        """Return the stored account; empty if there is none."""

    def write(self, account: str, *, before: str) -> bool:
        """Store the account. Return False, and write nothing, if the stored one is no longer `before` or may
        not be replaced.
        """

    def binds(self, renting: str) -> bool:
        """Return whether the stored account may not be replaced yet, because a machine other than the one
        named `renting` (which may be empty) may still exist.
        """

    @property
    def forgets(self) -> str:
        """Return the instruction by which a user clears the stored account, as text that follows "or"."""


class Guard(Protocol):
    def __call__(self, renting: str = "") -> None: ...


@dataclass(frozen=True)
class AccountWords:
    """What messages call a provider's account. `title`: the provider. `variable`: the environment variable
    that names the account to rent with from now on, overriding the stored one; it has no effect with a key of
    any other account, so it may remain set.
    """

    title: str
    variable: str


class Owner:
    """The check before any request about a machine of this control plane.

    `names` asks the provider under which names the key's account may be stored, the preferred one first; none
    if it cannot be determined. `named` is an account that is not compared with the stored one, as the
    variable of `words` gives it.
    """

    def __init__(
        self, names: Callable[[], Iterable[str]], memory: Memory, words: AccountWords, *, named: str = ""
    ) -> None:
        self._queried, self._memory, self._words, self._named = names, memory, words, named
        self._lock = threading.Lock()
        self._known: tuple[str, ...] | None = None

    def __call__(self, renting: str = "") -> None:
        """Check the account, and store it if a machine is about to be rented.

        `renting` is the name of the machine that is rented next; without it, nothing is stored. Raises
        PermanentError if the key belongs to another account than the stored one, TemporaryError if the owner
        cannot be determined.
        """
        names = self._names()
        if renting and names:
            self._remember(names, renting)
        elif names and self._named not in names:
            self._compare(names, self._memory.read())

    def _remember(self, names: tuple[str, ...], renting: str) -> None:
        for _ in range(WRITES_MAX):
            before = self._memory.read()
            if before == names[0]:
                return
            if self._named not in names:
                self._compare(names, before, renting)
                if before in names and self._memory.binds(renting):
                    # the same person as stored earlier: there may be machines on that account rather than the
                    # team's
                    return
            if self._memory.write(names[0], before=before):
                return
        raise TemporaryError(
            "the account that rents could not be stored, because others write at the same time"
        )

    def _compare(self, names: tuple[str, ...], before: str, renting: str = "") -> None:
        if before and before not in names and self._memory.binds(renting):
            raise PermanentError(
                f"the key for {self._words.title} belongs to another account ({names[0]}) than the one that "
                "rented the machines here "
                f"({before}); set the old key, or {self._memory.forgets}; or, to leave those machines "
                f"running unwatched, set {self._words.variable}={names[0]}"
            )

    def _names(self) -> tuple[str, ...]:
        """Return the names under which the account may be stored, the preferred one first; empty if they
        cannot be determined. Requested once, because a key's account does not change.
        """
        with self._lock:
            if self._known is None:
                # What a provider wrote is shown to users and kept in a file.
                self._known = tuple(short(name) for name in self._queried())
            return self._known


@dataclass(frozen=True)
class InFile:
    """A `Memory` in a file, for a control plane that has a folder."""

    file: Path

    def read(self) -> str:
        try:
            return self.file.read_text().strip() if self.file.exists() else ""
        except OSError as error:
            raise TemporaryError(f"{self.file}: {error.strerror or error}") from error

    def write(self, account: str, *, before: str) -> bool:
        try:
            if self.read() != before:
                return False
            self.file.write_text(f"{account}\n")
        except OSError as error:
            raise TemporaryError(f"{self.file}: {error.strerror or error}") from error
        return True

    def binds(self, renting: str) -> bool:
        return True

    @property
    def forgets(self) -> str:
        return f"delete {self.file} when that account has no machines left"


@dataclass(frozen=True)
class InStore:
    """A `Memory` in the store, for watchers without a lasting folder, such as functions and jobs; all of them
    share it.
    """

    store: Store
    provider: str
    """Name of the provider whose account it is."""

    def read(self) -> str:
        return self.store.watch().accounts.get(self.provider, "")

    def write(self, account: str, *, before: str) -> bool:
        watch = self.store.watch()
        after = replace(watch, version=watch.version + 1, accounts={**watch.accounts, self.provider: account})
        return watch.accounts.get(self.provider, "") == before and self.store.save_watch(
            after, version=watch.version
        )

    def binds(self, renting: str) -> bool:
        """Return whether any attempt may still have a machine of this provider, apart from the attempt that
        is about to rent one, which is stored already.
        """
        next_one = parse_pod_name(renting)
        if may_have_machine(self.store.unreadable(), {lease.run_id for lease in self.store.lease_statuses()}):
            return True  # it is unknown whose machine it is
        return any(
            attempt.ended_s is None
            and attempt.offer.provider == self.provider
            and (run.run_id, attempt.number) != next_one
            for run in self.store.list_runs()
            for attempt in run.attempts
        )

    @property
    def forgets(self) -> str:
        return "stop the runs, and wait until their machines are gone"
