"""A run on a rented machine: pods of a fake Prime Intellect, reached by real SSH, in the state in which the
control plane leaves them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.providers.port import SshAddress
from prime_train.providers.prime.pods import read_connection
from prime_train.providers.ssh_client.keys import login_key
from prime_train.providers.ssh_client.known_hosts import KnownHosts
from prime_train.providers.ssh_client.shell import connect
from prime_train.runs.run import Change, Run, RunState
from prime_train.spec.spec import RunSpec
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime
from tests.fakes.prime.client import create


@dataclass
class Rented:
    """A run on one machine after the other; `moved` assigns each of them, also the first."""

    shell: Shell
    fake: FakePrime
    run: Run

    @property
    def env(self) -> dict[str, str]:
        return {"PRIME_API_KEY": self.fake.api_key, "PRIME_API_BASE_URL": self.fake.url}

    @property
    def store(self) -> SqliteStore:
        return SqliteStore(self.shell.home / "control.sqlite")

    def connection(self) -> SshAddress:
        pod_id = self.pod_id
        found = read_connection(pod_id, self.fake.pod(pod_id).address)
        assert found is not None
        return found

    @property
    def pod_id(self) -> str:
        """Return the pod's id at Prime."""
        assert self.run.current_attempt is not None
        assert self.run.current_attempt.pod_id is not None
        return self.run.current_attempt.pod_id.removeprefix("prime/")

    @property
    def home(self) -> Path:
        """Return the home folder of the user who logs in to the machine."""
        found = self.fake.home_of(self.pod_id)
        assert found is not None
        return found

    @property
    def disk(self) -> Path:
        """Return the folder in which the agent works on the machine."""
        return self.home / "prime-train" / self.attempt

    @property
    def attempt(self) -> str:
        return f"{self.run.run_id}-e{self.run.attempt}"

    @property
    def known_hosts(self) -> Path:
        return self.shell.home / "attempts" / self.attempt / "known_hosts"

    def moved(self, *, pinned: bool = True) -> None:
        """Move the run to a fresh machine on which the agent has just been started. `pinned` False: no login
        to it has succeeded from here yet.
        """
        fresh = b.run(
            RunState.TRAINING, attempt=self.run.attempt + 1, spec=self.run.spec, run_id=self.run.run_id
        )
        pod_id = create(self.fake, name=f"pt-{fresh.run_id}-e{fresh.attempt}")
        attempts = (*fresh.attempts[:-1], replace(fresh.attempts[-1], pod_id=f"prime/{pod_id}"))
        self._save(replace(fresh, attempts=attempts))
        self.disk.joinpath("logs").mkdir(parents=True)
        self.home.joinpath(".prime-train", self.attempt).mkdir(parents=True)
        self.home.joinpath(".prime-train", self.attempt, "disk").write_text(f"{self.disk}\n")
        if pinned:
            with connect(
                self.connection(), login_key(self.shell.home / "ssh", b"m" * 32), KnownHosts(self.known_hosts)
            ):
                pass

    def ended(self) -> None:
        over = b.run(RunState.SUCCEEDED, attempt=self.run.attempt, spec=self.run.spec, run_id=self.run.run_id)
        attempts = (*over.attempts[:-1], replace(over.attempts[-1], pod_id=f"prime/{self.pod_id}"))
        self._save(replace(over, attempts=attempts))

    def log(self, name: str, text: str) -> None:
        """Append to a log on the machine."""
        with (self.disk / "logs" / name).open("a") as file:
            file.write(text)

    def _save(self, run: Run) -> None:
        record = self.store.load(run.run_id)
        if record is None:
            assert self.store.create(run)
        else:
            run = replace(run, version=record.run.version + 1)
            assert self.store.save(Change(run))
        self.run = run


@contextmanager
def rented(shell: Shell, spec: RunSpec | None = None) -> Iterator[Rented]:
    """Return a run that has no machine yet and is not in the store; `moved` stores it."""
    shell.home.mkdir(mode=0o700, exist_ok=True)
    key = login_key(shell.home / "ssh", b"m" * 32)
    with FakePrime(shell.here / "prime") as fake:
        fake.add_ssh_key(key.public)
        yield Rented(shell, fake, b.run(RunState.QUEUED, spec=spec if spec is not None else b.spec()))
