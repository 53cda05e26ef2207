"""The command within this process, for tests of what it prints, writes and returns."""

import contextlib
import os
import subprocess
from dataclasses import dataclass

from typer.testing import CliRunner

from prime_train.cli.verbs import app
from tests.cli.shell import Shell


@dataclass(frozen=True)
class Inside(Shell):
    """Like `Shell`, without the half second in which a process starts."""

    def run(self, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
        wanted = self.env | env
        removed: dict[str, str | None] = dict.fromkeys(set(os.environ) - set(wanted))
        with contextlib.chdir(self.here):
            done = CliRunner().invoke(app, list(args), env=removed | wanted)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return subprocess.CompletedProcess(args, done.exit_code, done.stdout, done.stderr)
