"""A wire of a known speed on one machine: what runs in a network namespace is reached through two interfaces that let so much through.

Each direction has a bucket of tokens of its own (`tc ... tbf`). A bucket holds some milliseconds' worth: so late the kernel may look
after it, on busy cores, without the wire being slower than it says. It adds no delay. Of a full wire 95 % are content, the rest is headers.
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
"""Twice the largest packet that one part of the kernel hands to another."""
QUEUE_MS = 50
"""What waits longer is dropped, which a sender that is told of the queue never lets happen."""
COMMAND_S_MAX = 20
OURS = re.compile(r"(wire-(\d+))\b")


class NoWire(Exception):
    """There is no such wire to be had here; the text says why."""


@dataclass(frozen=True)
class Wire:
    """`address` is that of the far end; a command behind `prefix` runs there."""

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
    """One at a time in a process; nothing of it is left afterwards, nor of those whose process was killed. Raises NoWire."""
    if not gbit_per_s > 0:
        raise ValueError(f"a wire of {gbit_per_s} Gbit/s; it takes more than 0")
    ip, tc = _programs()
    _clear(ip)
    # Networks of four addresses, from the range that is set aside for benchmarks.
    at = os.getpid() % 2**15 * 4
    near, far = (f"198.{18 + host // 2**16}.{host // 2**8 % 2**8}.{host % 2**8}" for host in (at + 1, at + 2))
    name = f"wire-{os.getpid()}"
    bucket = ("rate", f"{gbit_per_s * 1e9:.0f}bit", "burst", str(_burst(gbit_per_s)), "latency", f"{QUEUE_MS}ms")
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
    """Where a server is to be started, so that it is reached over such a wire; None is this machine itself. Raises NoWire."""
    if gbit_per_s is None:
        yield LOOPBACK
        return
    with shaped(gbit_per_s) as wire:
        yield wire.place


def speed(text: str) -> float:
    """Gbit/s, as an option says it."""
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
    """What processes left that could not clean up. Its interfaces go with a namespace."""
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
