"""A run whose machine is rented: pods of a fake Prime Intellect, reached by a real SSH, as the control plane leaves them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.adapters.pods_prime.connection import read_connection
from prime_train.adapters.ssh import KnownHosts, connect, login_key
from prime_train.adapters.store_sqlite import SqliteStore
from prime_train.core.run import Change, Run, RunState
from prime_train.core.spec import RunSpec
from prime_train.ports import Connection
from tests import builders as b
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime
from tests.fakes.prime.calling import create


@dataclass
class Rented:
    """A run on machine after machine; `moved` gives it the first as well."""

    shell: Shell
    fake: FakePrime
    run: Run

    @property
    def env(self) -> dict[str, str]:
        return {"PRIME_API_KEY": self.fake.api_key, "PRIME_API_BASE_URL": self.fake.url}

    @property
    def store(self) -> SqliteStore:
        return SqliteStore(self.shell.home / "control.sqlite")

    def connection(self) -> Connection:
        pod_id = self.pod_id
        found = read_connection(pod_id, self.fake.pod(pod_id).address)
        assert found is not None
        return found

    @property
    def pod_id(self) -> str:
        """As Prime knows it."""
        assert self.run.current_attempt is not None
        assert self.run.current_attempt.pod_id is not None
        return self.run.current_attempt.pod_id.removeprefix("prime/")

    @property
    def home(self) -> Path:
        """Of whoever logs in to the machine."""
        found = self.fake.home_of(self.pod_id)
        assert found is not None
        return found

    @property
    def disk(self) -> Path:
        """Where the agent works there."""
        return self.home / "prime-train" / self.attempt

    @property
    def attempt(self) -> str:
        return f"{self.run.run_id}-e{self.run.attempt}"

    @property
    def known_hosts(self) -> Path:
        return self.shell.home / "attempts" / self.attempt / "known_hosts"

    def moved(self, *, pinned: bool = True) -> None:
        """To a fresh machine, on which the agent has just been started; `pinned` False: nobody has logged in there yet."""
        fresh = b.run(RunState.TRAINING, attempt=self.run.attempt + 1, spec=self.run.spec, run_id=self.run.run_id)
        pod_id = create(self.fake, name=f"pt-{fresh.run_id}-e{fresh.attempt}")
        attempts = (*fresh.attempts[:-1], replace(fresh.attempts[-1], pod_id=f"prime/{pod_id}"))
        self._save(replace(fresh, attempts=attempts))
        self.disk.joinpath("logs").mkdir(parents=True)
        self.home.joinpath(".prime-train", self.attempt).mkdir(parents=True)
        self.home.joinpath(".prime-train", self.attempt, "disk").write_text(f"{self.disk}\n")
        if pinned:
            with connect(self.connection(), login_key(self.shell.home / "ssh", b"m" * 32), KnownHosts(self.known_hosts)):
                pass

    def ended(self) -> None:
        over = b.run(RunState.SUCCEEDED, attempt=self.run.attempt, spec=self.run.spec, run_id=self.run.run_id)
        attempts = (*over.attempts[:-1], replace(over.attempts[-1], pod_id=f"prime/{self.pod_id}"))
        self._save(replace(over, attempts=attempts))

    def log(self, name: str, text: str) -> None:
        """Appends to a log on the machine."""
        with (self.disk / "logs" / name).open("a") as file:
            file.write(text)

    def _save(self, run: Run) -> None:
        held = self.store.load(run.run_id)
        if held is None:
            assert self.store.create(run)
        else:
            run = replace(run, version=held.run.version + 1)
            assert self.store.save(Change(run))
        self.run = run


@contextmanager
def rented(shell: Shell, spec: RunSpec | None = None) -> Iterator[Rented]:
    """A run without a machine yet, nor in the store; `moved` puts it there."""
    shell.home.mkdir(mode=0o700, exist_ok=True)
    key = login_key(shell.home / "ssh", b"m" * 32)
    with FakePrime(shell.here / "prime") as fake:
        fake.add_ssh_key(key.public)
        yield Rented(shell, fake, b.run(RunState.QUEUED, spec=spec if spec is not None else b.spec()))
