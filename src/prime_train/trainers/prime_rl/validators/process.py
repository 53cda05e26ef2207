"""Runs a process with a time limit, a process group of its own, and only those of this process's environment
variables that are named.
"""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prime_train.errors import PermanentError, TemporaryError
from prime_train.text.redaction import redacted

OUTPUT_BYTES_MAX = 4 * 2**20
"""Number of bytes read from each output; the rest is ignored."""
OUTPUT_CHARS_MAX = 300

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def last_words(self) -> str:
        """The end of standard error on one line, without secrets."""
        return " ".join(_USERINFO.sub("", redacted(self.err)).split())[-OUTPUT_CHARS_MAX:]


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    limit_s: float,
    *,
    folder: Path,
    given: str = "",
    called: str = "",
) -> Done:
    """Run a command in `folder`, and kill everything left in its process group when it ends. Its outputs are
    files, so they need not be drained.

    `called`: the command's name in errors; by default the program's name. Raises PermanentError if the
    program cannot be started, TemporaryError if it did not end in `limit_s` seconds.
    """
    name = called or Path(command[0]).name
    with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        into.write(given.encode())
        into.seek(0)
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(environment),
                stdin=into,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise PermanentError(f"{name} cannot be started: {error.strerror}") from error
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise TemporaryError(f"{name} took longer than {limit_s:g} s") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Done(code, _read(out), _read(err))


def only(names: Iterable[str]) -> dict[str, str]:
    """Return these variables with their values, as far as this process's environment has them."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(OUTPUT_BYTES_MAX).decode(errors="replace")
