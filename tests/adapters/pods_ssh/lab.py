"""Machines of one's own, as folders that are their users' homes: what is sent to one by SSH is run there by
sh, without SSH.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_train.errors import TemporaryError
from prime_train.providers.port import SshAddress
from prime_train.providers.ssh.hosts import Host, HostKind
from prime_train.providers.ssh_client.shell import CommandResult

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBx"


@dataclass
class Box:
    """One machine. `is_cut_off`: nobody can log in. `loses`: the number of answers that are lost after the
    command was run; `change` changes what is answered, `edit` the script that is sent. `logins` counts those
    that succeeded.
    """

    home: Path
    is_cut_off: bool = False
    loses: int = 0
    change: Callable[[str], str] = str
    edit: Callable[[bytes], bytes] = bytes
    logins: int = 0

    @property
    def taken_by(self) -> tuple[str, ...]:
        """Return what the machine keeps of its pod: id, name, second and boot; empty if it is free."""
        files = list((self.home / ".prime-train" / "host").glob("*.taken"))
        return tuple(files[0].read_text().split()) if files else ()

    def start_again(self) -> None:
        """Let the machine look as after a reboot."""
        (file,) = (self.home / ".prime-train" / "host").glob("*.taken")
        file.write_text(file.read_text().replace(self.taken_by[3], "0" * 32))

    def run(self, command: str, *, stdin: bytes = b"", limit_s: float = 60.0) -> CommandResult:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        done = subprocess.run(
            ["sh", "-c", command],
            input=self.edit(stdin),
            env=env,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if self.loses:
            self.loses -= 1
            raise TemporaryError("the connection ended before the command did")
        return CommandResult(done.returncode, self.change(done.stdout.decode()))


@dataclass(frozen=True)
class Running:
    """A machine that is taken, as `Days` needs it."""

    id: str
    box: Box

    def runs(self, now_s: float) -> bool:
        return self.id in self.box.taken_by and "0" * 32 not in self.box.taken_by


@dataclass
class Lab:
    """The machines, by the address under which the list has them, and a clock."""

    folder: Path
    boxes: dict[str, Box] = field(default_factory=dict)
    at_s: float = field(default_factory=time.time)

    def kind(self, name: str, count: int = 1, **options: Any) -> HostKind:
        """Return a kind with new machines."""
        hosts = tuple(
            self._host(name if number == 1 else f"{name}-{number}") for number in range(1, count + 1)
        )
        return HostKind(
            **{
                "name": name,
                "gpu": "A100_80GB",
                "count": 1,
                "disk_gib": 1000,
                "usd_per_hour": 0.0,
                "hosts": hosts,
                **options,
            }
        )

    def _host(self, name: str) -> Host:
        home = self.folder / name
        home.mkdir(parents=True, exist_ok=True)
        self.boxes.setdefault(name, Box(home))
        return Host(name, "me", name, 22, (HOST_KEY,))

    @contextmanager
    def enter(self, address: SshAddress) -> Iterator[Box]:
        box = self.boxes[address.host]
        if box.is_cut_off:
            raise TemporaryError(f"{address.host} cannot be reached by SSH")
        box.logins += 1
        yield box

    @property
    def alive(self) -> list[Running]:
        """Return the machines that are taken."""
        return [Running(box.taken_by[0], box) for box in self.boxes.values() if box.taken_by]

    def now_s(self) -> float:
        return self.at_s

    def advance(self, seconds: float) -> None:
        self.at_s += seconds


def kinds_of(
    lab: Lab, stock: Mapping[str, int], *, names: tuple[str, ...] = ("a100", "spare"), count: int = 4
) -> tuple[HostKind, ...]:
    return tuple(lab.kind(name, stock.get(name, count), usd_per_hour=usd) for usd, name in enumerate(names))
