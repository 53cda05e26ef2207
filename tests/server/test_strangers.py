"""Too many connections at once, and too much on one: real sockets with a real `serve` process or server."""

import contextlib
import resource
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prime_train.stores.memory import MemoryStore
from prime_train.watch.canary_http import CanaryHttp
from prime_train.webhook.server import open_files
from prime_train.webhook.server.http_server import HEAD_BYTES_MAX
from prime_train.webhook.server.open_files import ConnectionLimits
from tests.cli.shell import PROGRAM, Shell
from tests.server.calling import await_true, call, exchange, serving
from tests.waiting import HANG_S
from tests.webhook.calls import ask, heartbeat, stored

FEW = ConnectionLimits(connections=12, backlog=64)
HASTY_S = 0.5
CHUNKED = b"POST /v1/canary HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def crowded() -> Iterator[str]:
    """Return a server with few connections allowed, and little time for a head."""
    store = MemoryStore()
    stored(store)
    with serving(store, FEW, head_s_max=HASTY_S) as here:
        yield here


@contextlib.contextmanager
def opened(url: str, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    parts = urlsplit(url)
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            one = stack.enter_context(
                socket.create_connection((parts.hostname or "", parts.port or 0), timeout=HANG_S)
            )
            one.sendall(first)
            made.append(one)
        yield made


def is_closed(connection: socket.socket) -> bool:
    """Wait until the connection is closed, whatever was received before; return whether it is."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return True


SLOW = {
    "nothing is ever said": b"",
    "half a request line": b"POST /v1/ca",
    "half a head": b"POST /v1/canary HTTP/1.1\r\nhost: x\r\nx-a: ",
    "half a body": b"POST /v1/canary HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n{",
}


@pytest.mark.parametrize("message", SLOW.values(), ids=SLOW)
def test_strangers_who_hold_every_connection_do_not_keep_a_machine_from_being_heard(
    message: bytes, crowded: str
) -> None:
    with opened(crowded, FEW.connections * 3, message) as strangers:
        assert call(crowded, ask("heartbeat", heartbeat(8)))[0] == 200
        assert call(crowded, ask("heartbeat", heartbeat(9)))[0] == 200
        assert is_closed(strangers[0])


FLOODS = {
    "trailers": b"0\r\n" + b"x-trailer: " + b"y" * 1000 + b"\r\n",
    "one trailer without end": b"0\r\nx-trailer: " + b"y" * 1000,
    "a chunk's extension without end": b"1;" + b"y" * 1000,
}


@pytest.mark.parametrize("flood", FLOODS, ids=FLOODS)
def test_what_follows_a_body_without_end_is_refused_before_it_fills_the_memory(
    flood: str, crowded: str
) -> None:
    first = FLOODS[flood]
    more = (first.removeprefix(b"0\r\n") if flood == "trailers" else b"y" * 1000) * 64
    answered = exchange(crowded, CHUNKED + first, *[more] * 800)
    # At once, and not when the time for a body is over. Whoever sends on after the answer may lose it.
    assert answered.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 ")) or answered == b""


@pytest.mark.parametrize("trailer", [b"", b"x-trailer: a\r\n", b"x-prime-signature: v1=abc\r\n"])
def test_a_trailer_is_neither_refused_nor_read(trailer: bytes, crowded: str) -> None:
    request = ask("heartbeat", heartbeat(8))
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    message = (
        f"POST {request.path} HTTP/1.1\r\nhost: x\r\nconnection: "
        f"close\r\n{head}transfer-encoding: "
        "chunked\r\n\r\n"
    ).encode()
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in request.body)
    assert exchange(crowded, message + pieces + b"0\r\n" + trailer + b"\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "first",
    [b"GET /", b"GET / HTTP/1.1\r\nx: ", b"GET / HTTP/1.1\r\n"],
    ids=["line", "header", "header's name"],
)
def test_a_head_without_end_is_refused(first: bytes, crowded: str) -> None:
    answered = exchange(crowded, first, *[b"a" * HEAD_BYTES_MAX] * 20)
    assert answered.startswith(b"HTTP/1.1 431 ") or answered == b""


# ------------------------------------------------------------------------------------------------------------
# descriptors


@pytest.fixture
def files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("files")
def test_as_many_files_may_be_open_as_the_system_lets_and_some_are_kept_back() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    few = open_files.connection_limits()
    assert few.connections <= 1024 - open_files.OWN_FILES
    open_files.raise_file_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, open_files.FILES_WANTED)
    assert open_files.connection_limits().connections >= few.connections


FILES = 1024


@pytest.mark.slow
def test_more_idle_connections_than_files_may_be_open_do_not_blind_the_canary_of_serve(shell: Shell) -> None:
    limited = [
        "sh",
        "-c",
        f'ulimit -n {FILES} && exec "$0" "$@"',
        PROGRAM,
        "serve",
        "--port",
        "0",
        "--no-watch",
    ]
    with (shell.here / "said.log").open("wb") as log:
        process = subprocess.Popen(
            limited, cwd=shell.here, env=shell.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        await_true(lambda: "serving " in shell.output or process.poll() is not None)
        url = shell.ok("key").split("=", 1)[1].splitlines()[0]
        with opened(url, FILES + 100):
            assert CanaryHttp(url, (shell.home / "master.key").read_bytes()).is_answering(0)
        assert "Traceback" not in shell.output
    finally:
        process.terminate()
        process.wait(HANG_S)
