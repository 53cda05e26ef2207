"""The shaped network passes the bytes that it should, and nothing of it remains afterwards."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.wire import NoWire, Wire, at_the_end_of, shaped, speed
from tests.fakes.certificates import make_certificate
from tests.fakes.s3_servers import minio, needs_minio

ROOT = Path(__file__).parents[2]
MIB = 2**20
SENT = 20 * MIB
SLOW_GBIT = 0.2

# At the far end: takes one connection, says how many bytes came, then sends as many.
ECHO = """\
import socket, sys
with socket.create_server((sys.argv[1], 0)) as door:
    print(door.getsockname()[1], flush=True)
    near, _ = door.accept()
    size = int(sys.argv[2])
    left = size
    while left:
        left -= len(near.recv(min(left, 2**20)))
    near.sendall(b"!")
    near.sendall(bytes(size))
    near.recv(1)
"""


@pytest.fixture
def wire() -> Iterator[Wire]:
    try:
        with shaped(SLOW_GBIT) as made:
            yield made
    except NoWire as why:
        pytest.skip(str(why))


def names() -> str:
    return subprocess.run(
        "ip netns list; ip link", shell=True, capture_output=True, text=True, check=True
    ).stdout


def received(near: socket.socket, size: int) -> None:
    while size:
        data = near.recv(min(size, MIB))
        assert data
        size -= len(data)


def test_both_directions_take_the_time_that_the_speed_tells(wire: Wire) -> None:
    with subprocess.Popen(
        [*wire.prefix, sys.executable, "-c", ECHO, wire.address, str(SENT)], stdout=subprocess.PIPE
    ) as echo:
        assert echo.stdout is not None
        with socket.create_connection((wire.address, int(echo.stdout.readline()))) as near:
            began_s = time.monotonic()
            near.sendall(bytes(SENT))
            received(near, 1)
            there_s = time.monotonic() - began_s
            received(near, SENT)
            back_s = time.monotonic() - began_s - there_s
    # No faster; how much slower is a question of what else the machine does.
    at_once = 2 * MIB
    assert there_s > (SENT - at_once) / wire.bytes_per_s
    assert back_s > (SENT - at_once) / wire.bytes_per_s


@needs_minio
def test_a_server_at_its_end_is_reached_over_tls(wire: Wire, tmp_path: Path) -> None:
    with minio(
        tmp_path / "s3", make_certificate(tmp_path / "certificate", wire.address), wire.place
    ) as server:
        assert server.url.startswith(f"https://{wire.address}:")
        server.create_bucket("bucket")
        server.client().put_object(Bucket="bucket", Key="key", Body=b"content")
        assert server.client().get_object(Bucket="bucket", Key="key")["Body"].read() == b"content"
        inside = subprocess.run(
            [wire.prefix[0], "netns", "pids", wire.prefix[-1]], capture_output=True, text=True, check=True
        )
        assert inside.stdout.split() == [str(server.pid)]


def test_nothing_stays_behind_where_the_work_on_it_fails() -> None:
    seen = []
    try:
        with pytest.raises(ZeroDivisionError), shaped(1) as wire:
            seen.append(wire.prefix[-1])
            assert wire.prefix[-1] in names()
            raise ZeroDivisionError
    except NoWire as why:
        pytest.skip(str(why))
    assert seen[0] not in names()


def test_what_a_killed_process_left_is_gone_with_the_next_wire() -> None:
    held = (
        "from tests.benchmarks.wire import shaped\nwith shaped(1) as wire:\n    "
        "print(wire.prefix[-1], "
        "flush=True)\n    input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", held],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        name = holder.stdout.readline().strip()
        holder.send_signal(signal.SIGKILL)
    if not name:
        pytest.skip("there is no such wire to be had here")
    with shaped(1):
        assert name not in names()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1001", "fast"])
def test_a_speed_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Gbit/s|could not convert"):
        speed(text)


def test_without_a_wire_the_server_is_on_loopback() -> None:
    with at_the_end_of(None) as place:
        assert (place.host, place.prefix) == ("127.0.0.1", ())


def test_where_there_can_be_none_it_says_why() -> None:
    ask = (
        "from tests.benchmarks.wire import NoWire, shaped\ntry:\n    shaped(1).__enter__()\nexcept "
        "NoWire "
        "as why:\n    print(why)"
    )
    stated = subprocess.run(
        [sys.executable, "-c", ask], cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True, check=True
    ).stdout
    assert stated.startswith("a wire of a known speed needs")
