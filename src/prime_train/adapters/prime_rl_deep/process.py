"""A process with a limit, a group of its own, and of our environment only what is named."""

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

from prime_train.core.text.redaction import masked
from prime_train.ports import PermanentError, TemporaryError

OUTPUT_BYTES_MAX = 4 * 2**20
"""What is read of either output; the rest is not looked at."""
SAID_CHARS_MAX = 300

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def last_words(self) -> str:
        """The end of what it complained of, in one line, without secrets."""
        return " ".join(_USERINFO.sub("", masked(self.err)).split())[-SAID_CHARS_MAX:]


def run(command: Sequence[str], environment: Mapping[str, str], limit_s: float, *, folder: Path, given: str = "", called: str = "") -> Done:
    """Runs it in `folder`; nothing it has started in its group outlives it. Its outputs are files: nobody has to drain them.

    `called`: what it is to the user, if not the program of that name. PermanentError: there is no such program. TemporaryError: it did not
    end in time.
    """
    name = called or Path(command[0]).name
    with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        into.write(given.encode())
        into.seek(0)
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=dict(environment), stdin=into, stdout=out, stderr=err, start_new_session=True
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
    """Of our environment, these."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(OUTPUT_BYTES_MAX).decode(errors="replace")
