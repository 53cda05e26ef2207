"""A network of known speed on one machine: programs in a network namespace are reached through two interfaces
with limited throughput.

Each direction has its own token bucket (`tc ... tbf`). A bucket holds some milliseconds' worth, which is how
late the kernel may serve it on busy cores without slowing the network down. It adds no delay. Of a full
network, 95 % are content, the rest is headers.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil

from tests.fakes.s3_servers import LOOPBACK, Place

BURST_S = 0.004
BURST_BYTES_MIN = 128 * 2**10
"""Minimum size of the token bucket in bytes: twice the largest packet that one part of the kernel hands to
another.
"""
QUEUE_MS = 50
"""Packets that wait longer are dropped; a sender that is informed of the queue prevents this."""
COMMAND_S_MAX = 20
OURS = re.compile(r"(wire-(\d+))\b")


class NoWire(Exception):
    """Such a network cannot be created on this machine; the text gives the reason."""


@dataclass(frozen=True)
class Wire:
    """A network. `address` is that of the far end; a command prefixed with `prefix` runs there."""

    gbit_per_s: float
    address: str
    prefix: tuple[str, ...]

    @property
    def place(self) -> Place:
        return Place(self.address, self.prefix)

    @property
    def bytes_per_s(self) -> float:
        return self.gbit_per_s * 1e9 / 8


@contextmanager
def shaped(gbit_per_s: float) -> Iterator[Wire]:
    """Create the network; only one at a time in a process. Nothing of it is left afterwards, nor of networks
    whose process was killed. Raises NoWire.
    """
    if not gbit_per_s > 0:
        raise ValueError(f"a wire of {gbit_per_s} Gbit/s; it takes more than 0")
    ip, tc = _programs()
    _clear(ip)
    # Networks of four addresses, from the range that is set aside for benchmarks.
    at = os.getpid() % 2**15 * 4
    near, far = (f"198.{18 + host // 2**16}.{host // 2**8 % 2**8}.{host % 2**8}" for host in (at + 1, at + 2))
    name = f"wire-{os.getpid()}"
    bucket = (
        "rate",
        f"{gbit_per_s * 1e9:.0f}bit",
        "burst",
        str(_burst(gbit_per_s)),
        "latency",
        f"{QUEUE_MS}ms",
    )
    with ExitStack() as ends:
        _do(ip, "netns", "add", name)
        ends.callback(_do, ip, "netns", "del", name)
        _do(ip, "link", "add", name, "type", "veth", "peer", "name", name, "netns", name)
        ends.callback(_do, ip, "link", "del", name)
        _do(ip, "-n", name, "link", "set", "lo", "up")
        for inside, address in (((), near), (("-n", name), far)):
            _do(ip, *inside, "address", "add", f"{address}/30", "dev", name)
            _do(ip, *inside, "link", "set", name, "up")
            _do(tc, *inside, "qdisc", "add", "dev", name, "root", "tbf", *bucket)
        yield Wire(gbit_per_s, far, (ip, "netns", "exec", name))


@contextmanager
def at_the_end_of(gbit_per_s: float | None) -> Iterator[Place]:
    """Return where to start a server so that it is reached over such a network; None is this machine itself.
    Raises NoWire.
    """
    if gbit_per_s is None:
        yield LOOPBACK
        return
    with shaped(gbit_per_s) as wire:
        yield wire.place


def speed(text: str) -> float:
    """Return the Gbit/s given by an option."""
    value = float(text)
    if not 0 < value <= 1000:
        raise ValueError(f"{text} Gbit/s; it is more than 0 and 1000 at most")
    return value


def _programs() -> tuple[str, str]:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise NoWire("a wire of a known speed needs Linux, and root")
    ip, tc = shutil.which("ip"), shutil.which("tc")
    if ip is None or tc is None:
        raise NoWire("a wire of a known speed needs `ip` and `tc` of iproute2 on PATH")
    return ip, tc


def _burst(gbit_per_s: float) -> int:
    return max(BURST_BYTES_MIN, int(gbit_per_s * 1e9 / 8 * BURST_S))


def _clear(ip: str) -> None:
    """Remove what killed processes left. The interfaces are removed with their namespace."""
    for name in _left(ip):
        try:
            _do(ip, "netns", "del", name)
        except NoWire:
            if name in _left(ip):  # Else another process was sooner.
                raise


def _left(ip: str) -> list[str]:
    found = [match for line in _do(ip, "netns", "list").splitlines() if (match := OURS.match(line))]
    return [match[1] for match in found if not psutil.pid_exists(int(match[2]))]


def _do(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False)
    if done.returncode != 0:
        raise NoWire(f"`{' '.join(command)}` failed: {done.stderr.strip()[:300]}")
    return done.stdout
