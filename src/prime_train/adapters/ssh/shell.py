"""Commands and files over one SSH connection.

What a call may take is bounded by a clock that closes the connection: the library below has waits without a limit, and a machine that is
taken away in the middle says nothing at all. So a command that did not end in time ends the connection too, and what became of it is not
known; whoever asks again must be able to do it twice.

A command's output is that of a machine that is not ours. It is cut to its last `OUTPUT_BYTES_MAX`, and what goes in by standard input
is in no error and no log. Only one that is followed may go on for ever: it has to say something now and then, and each piece of it is
handed on at once.
"""

import logging
import secrets
import shlex
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import paramiko

from prime_train.adapters.ssh.keys import LoginKey
from prime_train.adapters.ssh.known_hosts import KnownHosts
from prime_train.ports import OutsideError, PermanentError, TemporaryError

CONNECT_S_MAX = 15.0
HANDSHAKE_S_MAX = 30.0
COMMAND_S_MAX = 60.0
PUT_S_MAX = 300.0
FETCH_S_MAX = 120.0
LOOK_S = 0.5
SILENCE_S_MAX = 30.0
KEEPALIVE_S = 15
OUTPUT_BYTES_MAX = 64 * 2**10
PIECE_BYTES = 32 * 2**10
TAIL_CHARS_MAX = 300
CUT = 75
"""The exit code for a file that did not arrive whole."""

# Whatever it would log with a traceback is raised, and said once.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class Address(Protocol):
    """Where a pod's SSH server is, and who logs in."""

    @property
    def pod_id(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


@dataclass(frozen=True)
class Said:
    """What a command came to: its exit code, and the end of what it printed on both streams."""

    code: int
    text: str

    @property
    def tail(self) -> str:
        """On one line and cut short, for an error."""
        words = " ".join(self.text[-4 * TAIL_CHARS_MAX :].split())[-TAIL_CHARS_MAX:]
        return "".join(c if c.isprintable() else " " for c in words)


@dataclass(frozen=True)
class Fetched:
    """What a command came to: its exit code, and all that it printed by its standard output."""

    code: int
    data: bytes


def _unwatched(sent_bytes: int) -> None:
    """Nobody wants to know how far it is."""


@contextmanager
def connect(address: Address, key: LoginKey, hosts: KnownHosts, *, handshake_s: float = HANDSHAKE_S_MAX) -> Iterator["Shell"]:
    """A shell on the machine, closed at the end.

    TemporaryError: it cannot be reached now, or does not let us in (it may still be getting our key). PermanentError: its host key
    has changed; then it has been told nothing, not even who we are.
    """
    where = f"{address.user}@{address.host}:{address.port}"
    with ExitStack() as opened:
        with _told(where):
            transport = opened.enter_context(_connected(address))
            with _limit(transport, handshake_s):
                transport.start_client()
                hosts.check(address.pod_id, transport.get_remote_server_key())
                transport.auth_publickey(address.user, key.private)
            transport.set_keepalive(KEEPALIVE_S)
        yield Shell(transport, where)


class Shell:
    """One connection. Every method raises TemporaryError where it ends before the answer is there."""

    def __init__(self, transport: paramiko.Transport, where: str) -> None:
        self._transport, self.where = transport, where

    def run(
        self, command: str, *, stdin: bytes = b"", limit_s: float = COMMAND_S_MAX, progress: Callable[[int], None] = _unwatched
    ) -> Said:
        """Runs it in a login without a terminal. `progress` is called with the bytes of `stdin` that are sent, again and again."""
        with _told(self.where), _limit(self._transport, limit_s), self._transport.open_session() as channel:
            channel.set_combine_stderr(True)
            channel.exec_command(command)
            _send(channel, stdin, progress)
            text = _received(channel)
            # Set also when the connection is lost; then there is no code.
            channel.status_event.wait()
            if channel.exit_status < 0:
                raise TemporaryError(f"{self.where}: the connection ended before the command did")
            return Said(channel.exit_status, text.decode(errors="replace"))

    def fetch(self, command: str, *, bytes_max: int, limit_s: float = FETCH_S_MAX) -> Fetched:
        """What the command prints by its standard output; its other one is not read, and must not be flooded. One that prints more than
        `bytes_max` is given up: PermanentError."""
        with _told(self.where), _limit(self._transport, limit_s), self._transport.open_session() as channel:
            channel.exec_command(command)
            data = bytearray()
            while piece := channel.recv(PIECE_BYTES):
                data += piece
                if len(data) > bytes_max:
                    raise PermanentError(f"{self.where}: it prints more than {bytes_max} bytes")
            channel.status_event.wait()
            if channel.exit_status < 0:
                raise TemporaryError(f"{self.where}: the connection ended before the command did")
            return Fetched(channel.exit_status, bytes(data))

    def follow(self, command: str, *, stdin: bytes = b"", look_s: float = LOOK_S, silence_s: float = SILENCE_S_MAX) -> Iterator[bytes]:
        """What the command prints by its standard output, piece by piece, as long as it runs; b"" whenever nothing came for `look_s`, so
        that whoever follows can look at something else, or leave. TemporaryError: it has ended, or said nothing for `silence_s`."""
        with _told(self.where), ExitStack() as opened:
            with _limit(self._transport, COMMAND_S_MAX):
                channel = opened.enter_context(self._transport.open_session())
                channel.exec_command(command)
                _send(channel, stdin, _unwatched)
            channel.settimeout(look_s)
            silent_s = 0.0
            while silent_s < silence_s:
                try:
                    piece = channel.recv(PIECE_BYTES)
                except TimeoutError:
                    silent_s += look_s
                    yield b""
                    continue
                if not piece:
                    raise TemporaryError(f"{self.where}: the connection ended")
                silent_s = 0.0
                yield piece
            raise TimeoutError(None, f"nothing was heard for {silence_s:g} s")

    def put(self, path: str, data: bytes, *, limit_s: float = PUT_S_MAX, progress: Callable[[int], None] = _unwatched) -> None:
        """Writes a file, whole or not at all, for its owner only; missing folders are made. A relative `path` starts at the home.

        PermanentError: the machine refuses it.
        """
        said = self.run(_writing(path, len(data)), stdin=data, limit_s=limit_s, progress=progress)
        if said.code == CUT:
            raise TemporaryError(f"{self.where}: {path} did not arrive whole")
        if said.code != 0:
            raise PermanentError(f"{self.where}: {path} cannot be written: {said.tail}")


def _writing(path: str, size_bytes: int) -> str:
    """The size is counted on the other side: when a connection ends in the middle, it looks there like the end of the file."""
    script = f"""\
umask 077
draft="$1.{secrets.token_hex(4)}"
mkdir -p "$(dirname "$1")" && cat >"$draft" || {{ rm -f "$draft"; exit 1; }}
[ "$(wc -c <"$draft")" -eq {size_bytes} ] && mv -f "$draft" "$1" && exit 0
rm -f "$draft"
exit {CUT}
"""
    return f"sh -c {shlex.quote(script)} put {shlex.quote(path)}"


@contextmanager
def _connected(address: Address) -> Iterator[paramiko.Transport]:
    with socket.create_connection((address.host, address.port), timeout=CONNECT_S_MAX) as sock:
        transport = paramiko.Transport(sock)
        try:
            yield transport
        finally:
            transport.close()


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Turns the errors of the network and of the library into ours."""
    try:
        yield
    except OutsideError:
        raise
    except paramiko.AuthenticationException as error:
        raise TemporaryError(f"{where} does not let us in; the key may not be there yet") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise TemporaryError(f"{where} cannot be reached by SSH: {reason}") from error


@contextmanager
def _limit(transport: paramiko.Transport, limit_s: float) -> Iterator[None]:
    """Closes the connection when the time is up: every wait inside then ends, with whatever error."""
    up = threading.Event()

    def close() -> None:
        up.set()
        transport.close()

    timer = threading.Timer(limit_s, close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OutsideError, paramiko.SSHException, EOFError, OSError) as error:
        if up.is_set():
            raise TimeoutError(None, f"no answer in {limit_s:g} s") from error
        raise
    finally:
        timer.cancel()


def _send(channel: paramiko.Channel, data: bytes, progress: Callable[[int], None]) -> None:
    view = memoryview(data)
    # A command may end without reading all of it. Its exit code says why; where there is none, the connection is lost.
    with suppress(OSError):
        for start in range(0, len(view), PIECE_BYTES):
            channel.sendall(bytes(view[start : start + PIECE_BYTES]))
            progress(min(start + PIECE_BYTES, len(view)))
        channel.shutdown_write()


def _received(channel: paramiko.Channel) -> bytes:
    """Until the other side closes; only the end is kept."""
    kept = bytearray()
    while data := channel.recv(PIECE_BYTES):
        kept += data
        del kept[:-OUTPUT_BYTES_MAX]
    return bytes(kept)
