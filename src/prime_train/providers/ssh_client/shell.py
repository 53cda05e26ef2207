"""Commands and files over one SSH connection.

Every call is limited by a timer that closes the connection, because paramiko has waits without a timeout and
a machine that is taken away sends nothing at all. So a command that exceeds its time ends the connection too,
and its outcome is unknown; callers must be idempotent.

Output comes from an untrusted machine. It is cut to its last `OUTPUT_BYTES_MAX` bytes, and standard input
appears in no error and no log. Only `follow` has no total limit: the command must print something now and
then, and each piece is yielded at once.
"""

import logging
import secrets
import shlex
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import paramiko

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.providers.ssh_client.keys import LoginKey
from prime_train.providers.ssh_client.known_hosts import KnownHosts, refuse_other

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
"""The exit code that reports that a file was received only in part."""

# Paramiko also raises what it would log with a traceback; errors are reported once.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class Address(Protocol):
    """Address of a pod's SSH server, and the user to log in as."""

    @property
    def pod_id(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def host_keys(self) -> tuple[str, ...]:
        """The keys that its server may show; empty: the first one is pinned."""


@dataclass(frozen=True)
class CommandResult:
    """Result of a command: its exit code, and the end of what it printed on both streams."""

    code: int
    text: str

    @property
    def tail(self) -> str:
        """The end of the output on one line, at most `TAIL_CHARS_MAX` characters, for an error message."""
        words = " ".join(self.text[-4 * TAIL_CHARS_MAX :].split())[-TAIL_CHARS_MAX:]
        return "".join(c if c.isprintable() else " " for c in words)


@dataclass(frozen=True)
class Fetched:
    """Result of a command: its exit code and its complete standard output."""

    code: int
    data: bytes


def _unwatched(sent_bytes: int) -> None:
    """Ignore the progress."""


@contextmanager
def connect(
    address: Address, key: LoginKey, hosts: KnownHosts, *, handshake_s: float = HANDSHAKE_S_MAX
) -> Iterator["Shell"]:
    """Yield a shell on the machine, and close it at the end.

    Raises TemporaryError if the machine cannot be reached now or refuses the key (which it may not have
    received yet); PermanentError if its host key has changed, in which case nothing was sent to it, not even
    the user name.
    """
    where = f"{address.user}@{address.host}:{address.port}"
    with ExitStack() as opened:
        with _translated_errors(where):
            transport = opened.enter_context(_connected(address))
            with _limit(transport, handshake_s):
                _prefer(transport, address.host_keys)
                transport.start_client()
                shown = transport.get_remote_server_key()
                refuse_other(where, address.host_keys, shown)
                hosts.check(address.pod_id, shown)
                transport.auth_publickey(address.user, key.private)
            transport.set_keepalive(KEEPALIVE_S)
        yield Shell(transport, where)


def _prefer(transport: paramiko.Transport, host_keys: Sequence[str]) -> None:
    """Ask first for the kinds of host keys that are known, because a server has several."""
    known = {key.split()[0] for key in host_keys}
    options = transport.get_security_options()
    options.key_types = sorted(
        options.key_types, key=lambda kind: ("ssh-rsa" if kind.startswith("rsa-") else kind) not in known
    )


class Shell:
    """A shell on a machine, through one SSH connection. Every method raises TemporaryError if the connection
    ends before the result is complete.
    """

    def __init__(self, transport: paramiko.Transport, where: str) -> None:
        self._transport, self.where = transport, where

    def run(
        self,
        command: str,
        *,
        stdin: bytes = b"",
        limit_s: float = COMMAND_S_MAX,
        progress: Callable[[int], None] = _unwatched,
    ) -> CommandResult:
        """Run the command without a terminal and return its result. `progress` is called repeatedly with the
        number of bytes of `stdin` sent so far.
        """
        with (
            _translated_errors(self.where),
            _limit(self._transport, limit_s),
            self._transport.open_session() as channel,
        ):
            channel.set_combine_stderr(True)
            channel.exec_command(command)
            _send(channel, stdin, progress)
            text = _received(channel)
            # Also set when the connection is lost; there is no exit code then.
            channel.status_event.wait()
            if channel.exit_status < 0:
                raise TemporaryError(f"{self.where}: the connection ended before the command did")
            return CommandResult(channel.exit_status, text.decode(errors="replace"))

    def fetch(self, command: str, *, bytes_max: int, limit_s: float = FETCH_S_MAX) -> Fetched:
        """Return the command's exit code and standard output. Standard error is not read, so the command must
        not print much there. Raises PermanentError if it prints more than `bytes_max` bytes.
        """
        with (
            _translated_errors(self.where),
            _limit(self._transport, limit_s),
            self._transport.open_session() as channel,
        ):
            channel.exec_command(command)
            data = bytearray()
            while piece := channel.recv(PIECE_BYTES):
                data += piece
                if len(data) > bytes_max:
                    raise PermanentError(f"{self.where}: the command prints more than {bytes_max} bytes")
            channel.status_event.wait()
            if channel.exit_status < 0:
                raise TemporaryError(f"{self.where}: the connection ended before the command did")
            return Fetched(channel.exit_status, bytes(data))

    def follow(
        self, command: str, *, stdin: bytes = b"", look_s: float = LOOK_S, silence_s: float = SILENCE_S_MAX
    ) -> Iterator[bytes]:
        """Yield the command's standard output piece by piece while it runs, and b"" whenever nothing came for
        `look_s` seconds, so that the caller can do something else or stop. Raises TemporaryError when the
        command ends, or after `silence_s` seconds without output.
        """
        with _translated_errors(self.where), ExitStack() as opened:
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
            raise TimeoutError(None, f"nothing was received for {silence_s:g} s")

    def put(
        self,
        path: str,
        data: bytes,
        *,
        limit_s: float = PUT_S_MAX,
        progress: Callable[[int], None] = _unwatched,
    ) -> None:
        """Write a file atomically, readable by its owner only, and create missing folders. A relative `path`
        starts at the home folder.

        Raises PermanentError if the machine refuses the write, TemporaryError if the file was not transferred
        completely.
        """
        result = self.run(_writing(path, len(data)), stdin=data, limit_s=limit_s, progress=progress)
        if result.code == CUT:
            raise TemporaryError(f"{self.where}: {path} arrived incomplete")
        if result.code != 0:
            raise PermanentError(f"{self.where}: {path} cannot be written: {result.tail}")


def _writing(path: str, size_bytes: int) -> str:
    """Return the command that writes the file. It checks the size on the machine, because a connection that
    breaks looks there like the end of the file.
    """
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
def _translated_errors(where: str) -> Iterator[None]:
    """Convert errors of the network and of paramiko to TemporaryError."""
    try:
        yield
    except ExternalError:
        raise
    except paramiko.AuthenticationException as error:
        raise TemporaryError(f"{where} refuses the SSH key; it may not be installed yet") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise TemporaryError(f"{where} cannot be reached by SSH: {reason}") from error


@contextmanager
def _limit(transport: paramiko.Transport, limit_s: float) -> Iterator[None]:
    """Close the connection after `limit_s` seconds, which ends every wait inside the block with some error;
    that error becomes TimeoutError.
    """
    up = threading.Event()

    def close() -> None:
        up.set()
        transport.close()

    timer = threading.Timer(limit_s, close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (ExternalError, paramiko.SSHException, EOFError, OSError) as error:
        if up.is_set():
            raise TimeoutError(None, f"no answer in {limit_s:g} s") from error
        raise
    finally:
        timer.cancel()


def _send(channel: paramiko.Channel, data: bytes, progress: Callable[[int], None]) -> None:
    view = memoryview(data)
    # A command may end without reading all of it. Its exit code says why; if there is none, the connection is
    # lost.
    with suppress(OSError):
        for start in range(0, len(view), PIECE_BYTES):
            channel.sendall(bytes(view[start : start + PIECE_BYTES]))
            progress(min(start + PIECE_BYTES, len(view)))
        channel.shutdown_write()


def _received(channel: paramiko.Channel) -> bytes:
    """Read until the other side closes, and return the last `OUTPUT_BYTES_MAX` bytes."""
    kept = bytearray()
    while data := channel.recv(PIECE_BYTES):
        kept += data
        del kept[:-OUTPUT_BYTES_MAX]
    return bytes(kept)
