"""Whose account it is. To another one, all our machines would look gone: they would be rented anew there, and go on being paid here.

It is remembered right before a machine is rented, never by a look: who only looks at what is for rent, with a key of their own, must not
take the place of the one that rents.
"""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.core.keys import parse_pod_name
from prime_train.ports import PermanentError, Store, TemporaryError

ACCOUNT = "PRIME_TRAIN_PRIME_ACCOUNT"
"""Names the account that rents from now on, whatever is remembered. It says so of no other one, so it does no harm where it stays."""
TEAM = "team:"
WRITES_MAX = 10

log = logging.getLogger(__name__)


class Memory(Protocol):
    """Of the account that machines were rented with. All raise OutsideError."""

    def read(self) -> str:
        """Empty: none is remembered."""

    def write(self, account: str, *, before: str) -> bool:
        """False: nothing was written, for it is not, or may not be, `before` any more."""

    def binds(self, renting: str) -> bool:
        """Whether no other one may take its place yet, for a machine that is not the one of the name `renting`, which may be empty."""

    @property
    def forgets(self) -> str:
        """What makes it forget, in words that follow "or"."""


class Guard(Protocol):
    def __call__(self, renting: str = "") -> None: ...


class Owner:
    """Called before anything is asked of our machines. `named`: the account that is not compared with the memory, see `ACCOUNT`."""

    def __init__(self, client: PrimeClient, memory: Memory, *, named: str = "") -> None:
        self._client, self._memory, self._named = client, memory, named
        self._lock = threading.Lock()
        self._known: tuple[str, ...] | None = None

    def __call__(self, renting: str = "") -> None:
        """`renting`: the name of the machine that is rented next; its account is remembered. Without one, nothing is changed.

        PermanentError: the key is of another account than the one that is remembered. TemporaryError: it is not known whose it is.
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
                    return  # the same person's, as it was remembered once: machines may be on that account, and not the team's
            if self._memory.write(names[0], before=before):
                return
        raise TemporaryError("whose account rents could not be written down: others write at the same time")

    def _compare(self, names: tuple[str, ...], before: str, renting: str = "") -> None:
        if before and before not in names and self._memory.binds(renting):
            raise PermanentError(
                f"the key for Prime Intellect is of another account ({names[0]}) than the machines here were rented with ({before}); "
                f"set the old key, or {self._memory.forgets}; to give them up, set {ACCOUNT}={names[0]}"
            )

    def _names(self) -> tuple[str, ...]:
        """What the account may be remembered as, the best first; none where it cannot be asked. Asked once: a key's does not change."""
        with self._lock:
            if self._known is None:
                self._known = tuple(self._asked())
            return self._known

    def _asked(self) -> Iterator[str]:
        for ask in (self._team, self._person) if self._client.team_id else (self._person,):
            try:
                yield ask()
            except PermanentError as error:
                log.warning("whose key it is cannot be asked: %s", error)

    def _team(self) -> str:
        """Whoever may look into a team's wallet is of the team; that it is named here proves nothing."""
        self._client.wallet()
        return f"{TEAM}{self._client.team_id}"

    def _person(self) -> str:
        """Also where a team pays: so it was remembered once."""
        return self._client.whoami().id


@dataclass(frozen=True)
class InFile:
    """For a control plane that has a folder."""

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
        return f"delete {self.file} when none of its machines is left"


@dataclass(frozen=True)
class InStore:
    """For watchers whose folder is gone with them, such as functions and jobs: what one has seen, all know."""

    store: Store

    def read(self) -> str:
        return self.store.watch().account

    def write(self, account: str, *, before: str) -> bool:
        watch = self.store.watch()
        after = replace(watch, version=watch.version + 1, account=account)
        return watch.account == before and self.store.save_watch(after, version=watch.version)

    def binds(self, renting: str) -> bool:
        """As long as an attempt may have a machine. The one that is rented next is an attempt already, and has none."""
        next_one = parse_pod_name(renting)
        return any(
            attempt.ended_s is None and (run.run_id, attempt.number) != next_one
            for run in self.store.list_runs()
            for attempt in run.attempts
        )

    @property
    def forgets(self) -> str:
        return "stop the runs, and wait until their machines are gone"
