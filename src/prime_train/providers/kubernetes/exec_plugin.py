"""Credentials of a cluster, also those that a command prints: the exec plugins of a kubeconfig, as GKE, EKS
and AKS use them.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.rental.parsing import second
from prime_train.providers.rental.reasons import short

EXEC_S_MAX = 60.0
EARLY_S = 60.0
"""Seconds before the end of its validity at which a credential is replaced."""
OUTPUT_BYTES_MAX = 2**20
READ_BYTES = 2**16
PIPE_S_MAX = 1.0
"""Seconds that are waited for the end of what an ended command has printed: a program that it has left behind
may hold it open.
"""
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INFO = "KUBERNETES_EXEC_INFO"
OURS = "PRIME_TRAIN_"
_TOKEN = re.compile(r"[!-~]{1,65536}")


@dataclass(frozen=True)
class Login:
    """What a caller proves itself with: a token, or a certificate with its key as PEM texts."""

    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


@dataclass
class ExecPlugin:
    """A command that prints a credential. It is run again when the credential ends, or was refused.
    Thread-safe.

    `wall` returns the time of day, in which credentials say when they end.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    version: str
    where: str
    """The kubeconfig, for messages."""
    limit_s: float = EXEC_S_MAX
    wall: Callable[[], float] = time.time
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _kept: Login | None = field(default=None, repr=False)
    _until_s: float = 0.0

    @classmethod
    def of(
        cls, given: Any, folder: Path, where: str, environment: Mapping[str, str], url: str, authority: str
    ) -> "ExecPlugin":
        """Return the plugin that a kubeconfig describes. Raises PermanentError if it cannot be used."""
        if not isinstance(given, dict) or not isinstance(given.get("command"), str) or not given["command"]:
            raise PermanentError(f"kubeconfig {where}: exec of the user has no command")
        version = given.get("apiVersion")
        if version not in VERSIONS:
            raise PermanentError(
                f"kubeconfig {where}: exec of the user needs an apiVersion of {' or '.join(VERSIONS)}"
            )
        if given.get("interactiveMode") == "Always":
            raise PermanentError(
                f"kubeconfig {where}: exec of the user asks people questions, and a control plane has nobody "
                "to ask"
            )
        program = given["command"]
        if "/" in program and not program.startswith("/"):
            program = str((folder / program).resolve())
        rows = [
            row
            for row in given.get("env") or ()
            if isinstance(row, dict) and isinstance(row.get("name"), str)
        ]
        spec: dict[str, Any] = {"interactive": False}
        if given.get("provideClusterInfo"):
            spec["cluster"] = {
                "server": url,
                "certificate-authority-data": b64encode(authority.encode()).decode(),
            }
        own = {row["name"]: str(row.get("value", "")) for row in rows}
        info = {INFO: json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})}
        arguments = tuple(str(each) for each in given.get("args") or ())
        # The environment without what is about the control plane itself, such as its master key.
        return cls(
            (program, *arguments),
            {
                **{name: value for name, value in environment.items() if not name.startswith(OURS)},
                **own,
                **info,
            },
            str(version),
            where,
        )

    def __call__(self, anew: bool) -> Login:
        """Return the credential. `anew`: the kept one was refused. Raises TemporaryError if the command
        fails, because it may be a network that it cannot reach; PermanentError if there is no such command.
        """
        with self._lock:
            if self._kept is None or anew or self.wall() >= self._until_s:
                self._kept, self._until_s = self._run()
            return self._kept

    def _run(self) -> tuple[Login, float]:
        name = Path(self.command[0]).name
        try:
            code, output, errors = _ended(self.command, self.environment, self.limit_s)
        except FileNotFoundError:
            raise PermanentError(
                f"kubeconfig {self.where}: {name}, which logs in to the cluster, is not installed here"
            ) from None
        except subprocess.TimeoutExpired:
            raise TemporaryError(
                f"{name}, which logs in to the cluster, did not end within {self.limit_s:.0f} s"
            ) from None
        except OSError as error:
            raise PermanentError(
                f"kubeconfig {self.where}: {name} cannot be run: {error.strerror or error}"
            ) from None
        if code != 0:
            said = short(errors.decode(errors="replace"))
            raise TemporaryError(
                f"{name}, which logs in to the cluster, failed with exit code {code}: "
                f"{said or 'it said nothing'}"
            )
        return self._parsed(output, name)

    def _parsed(self, output: bytes, name: str) -> tuple[Login, float]:
        try:
            content = json.loads(output)
        except (ValueError, RecursionError):
            content = None
        status = (
            content.get("status")
            if isinstance(content, dict) and content.get("kind") == "ExecCredential"
            else None
        )
        found = status if isinstance(status, dict) else {}
        login = Login(
            token_in(_text(found.get("token"))),
            _text(found.get("clientCertificateData")),
            _text(found.get("clientKeyData")),
        )
        if not login.token and not (login.certificate and login.key):
            raise TemporaryError(
                f"{name}, which logs in to the cluster, printed no ExecCredential with a token or a "
                "certificate and key"
            )
        ends_s = second(_text(found.get("expirationTimestamp")))
        return login, ends_s - EARLY_S if ends_s else float("inf")


def token_in(text: str) -> str:
    """Return the token; empty for a text that can be none: a kubeconfig may name any file as its token, and
    its server is sent that.
    """
    return text if _TOKEN.fullmatch(text) else ""


def _ended(
    command: tuple[str, ...], environment: Mapping[str, str], limit_s: float
) -> tuple[int, bytes, bytes]:
    """Return the exit code of the command and what it printed, of which no more than `OUTPUT_BYTES_MAX` bytes
    each are kept; a command that prints more is ended. Raises OSError if it cannot be started, and
    TimeoutExpired.
    """
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    kept = bytearray(), bytearray()
    readers = [
        threading.Thread(target=_keep_start, args=(pipe, into, process), daemon=True)
        for pipe, into in zip((process.stdout, process.stderr), kept, strict=True)
    ]
    for reader in readers:
        reader.start()
    try:
        code = process.wait(limit_s)
    except BaseException:
        _kill(process)
        process.wait()
        raise
    for reader in readers:
        reader.join(PIPE_S_MAX)
    return code, bytes(kept[0]), bytes(kept[1])


def _keep_start(pipe: IO[bytes], into: bytearray, process: "subprocess.Popen[bytes]") -> None:
    with pipe:
        while len(into) <= OUTPUT_BYTES_MAX and (piece := pipe.read1(READ_BYTES)):  # type: ignore[attr-defined]  # it is buffered
            into += piece
        if len(into) > OUTPUT_BYTES_MAX and process.poll() is None:
            _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the command and what it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
