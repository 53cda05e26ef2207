"""The process in which the package `wandb` runs.

The package is kept out of the processes that use it, for these reasons. It takes half a second to import. Its
settings are those of a whole process, which may be a user's that trains. It leaves the address of its helper
in the environment, for all children to use. Its helper writes what W&B answers to a file or to standard
error, and a failing server may repeat the key. It reports to W&B's developers.

So the environment is a list of what is needed, there is no home folder, the folder for temporary files is
removed, and standard error is discarded. The process ends with its standard input, so it outlives no process
that started it, however that ends.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from prime_train.errors import PermanentError, TemporaryError

ANSWER_S_MAX = 180
"""Limit in seconds of a call: a list takes a dozen requests, each with a limit of its own."""
ANSWER_BYTES_MAX = 32 * 2**20

_SCRIPT = Path(__file__).with_name("wandb_script.py")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_INHERITED = ("PATH", "LANG", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", *_PROXIES)
_OWN = {
    # Nothing can be made below a file.
    "HOME": os.devnull,
    "WANDB_DIR": os.devnull,
    "WANDB_SILENT": "true",
    "WANDB_ERROR_REPORTING": "false",
    # Of a request that fails: by default it is repeated until its time is up, and W&B's reason is lost.
    "WANDB__GRAPHQL_RETRY_MAX": "1",
}

Answer = Mapping[str, object]


class ApiProcess:
    """The process, which the first call starts, and the next one after it has ended. Thread-safe: one call at
    a time.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def ask(self, call: Mapping[str, object]) -> Answer:
        """Return the answer to a call of `api_script`. Raises PermanentError if the package is not installed,
        TemporaryError if the process gives no answer.
        """
        with self._turn:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(call).encode() + b"\n")
                process.stdin.flush()
                is_there = select.select([process.stdout], [], [], ANSWER_S_MAX)[0]
                line = process.stdout.readline(ANSWER_BYTES_MAX) if is_there else b""
            except OSError:
                line = b""
            if not line.endswith(b"\n"):
                self._end()
                raise TemporaryError(
                    "W&B cannot be queried: the process of the package wandb ended or did not answer"
                )
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            if find_spec("wandb") is None:
                raise PermanentError(
                    "W&B cannot be queried, because the package wandb is not installed: install it as "
                    "prime-train[wandb]"
                )
            self._end()
            # Its helper removes a part at the same time. The name is short because a socket is in there.
            self._folder = tempfile.TemporaryDirectory(prefix="pt-", ignore_cleanup_errors=True)
            environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_SCRIPT)],
                env=environment
                | _OWN
                | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": self._folder.name},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            atexit.register(self._end)
        return self._process

    def _end(self) -> None:
        """End the process; the helper of the package ends when it does."""
        atexit.unregister(self._end)
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was written last and not received
                        pipe.close()
        if self._folder is not None:
            self._folder.cleanup()
