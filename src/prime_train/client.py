"""prime-train from Python: the same operations as the command line, with typed values and one family of errors.

    from prime_train.client import Client

    client = Client()
    run = client.launch("configs/demo.yaml")
    for event in run.follow():
        print(event.at_s, event.kind, event.text)
    print(run.status().durable_step, run.status().spent_usd)

A client works with the control plane that its environment names: the home folder of this machine (`PRIME_TRAIN_HOME`, or `~/.prime-train`),
or one elsewhere (`PRIME_TRAIN_STORE` and `PRIME_TRAIN_MASTER_KEY`). It decides nothing and rents nothing itself: what it asks for, the
control plane carries out.

Errors, all of them importable from here:

- `UsageError`: what was asked for cannot be done; its `fix` says what to do.
- `InvalidConfig`: a config has mistakes; its `findings` name each with its line.
- `OutsideError`: a store, bucket or provider failed. `TemporaryError` may work later, `PermanentError` will not.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from prime_train.configs.loader import matters
from prime_train.control_plane.wiring.home import HOME, Home
from prime_train.core.budget import Limit
from prime_train.core.errors import OutsideError, PermanentError, TemporaryError, UsageError
from prime_train.core.finding import Finding, Severity
from prime_train.core.offers import Ranking
from prime_train.core.run import HistoryEvent
from prime_train.core.text.deadline import parse_deadline
from prime_train.operations import checkpoints as checkpoint_list
from prime_train.operations import dry_run
from prime_train.operations.checkpoints import Row as Checkpoint
from prime_train.operations.diagnose import RunDiagnosis, diagnose
from prime_train.operations.launch_config import InvalidConfig, checked, launch_checked
from prime_train.operations.logs import log_end
from prime_train.operations.resume import resume
from prime_train.operations.run_filter import RunFilter
from prime_train.operations.run_lookup import find
from prime_train.operations.status import status, statuses
from prime_train.operations.stop import stop
from prime_train.operations.validate import found_in
from prime_train.reports.run_status import Standing as RunStatus

__all__ = [
    "Checkpoint",
    "Client",
    "Finding",
    "InvalidConfig",
    "OutsideError",
    "PermanentError",
    "Run",
    "RunDiagnosis",
    "RunStatus",
    "Severity",
    "TemporaryError",
    "UsageError",
]

FOLLOW_EVERY_S = 1.0
RUNS_MAX = 100
LOG_LINES = 40


def _ignore(_: str) -> None:
    """What could not be looked at is left out where nobody asks for it."""


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


class Client:
    """The control plane that `home` or the environment names.

    `home`: the folder of a control plane on this machine; by default `PRIME_TRAIN_HOME`, or `~/.prime-train`. `environment`: variables to
    read in place of this process's own, such as `PRIME_TRAIN_STORE`. Nothing is asked, and no folder made, before a method is called.

    >>> import tempfile
    >>> Client(tempfile.mkdtemp()).runs()
    []
    """

    def __init__(self, home: str | Path | None = None, *, environment: Mapping[str, str] | None = None) -> None:
        variables = dict(os.environ if environment is None else environment)
        if home is not None:
            variables[HOME] = str(Path(home).absolute())
        self._home = Home.of(variables)

    def __repr__(self) -> str:
        return f"Client({self._home.elsewhere or str(self._home.root)!r})"

    def runs(
        self,
        *,
        state: str | Sequence[str] = (),
        name: str = "",
        tag: str | Sequence[str] = (),
        since_s: int | None = None,
        runs_max: int = RUNS_MAX,
    ) -> list[RunStatus]:
        """How the newest `runs_max` runs stand, newest first: of all, or of those that are meant.

        `state`: `training`, `failed` ..., or `active` or `ended`; of several one is enough. `name`: a part of the run's id or of its
        config's name, or a pattern such as `qwen-*`. `tag`: of the config's `tags`; a run has to have all of several. `since_s`: launched
        at most so many seconds ago. Raises UsageError where a state is none, and OutsideError where the store does not answer.

        >>> import tempfile
        >>> Client(tempfile.mkdtemp()).runs(state="active", tag="ablation", since_s=86400)
        []
        """
        wanted = RunFilter(_words(state), name, _words(tag), since_s)
        return list(statuses(self._home.store(), wanted, runs_max=runs_max).runs)

    def run(self, name: str) -> "Run":
        """The run that `name` stands for: its id, the start of one, or a config's name, which means its live or else its newest run.

        Raises UsageError where there is no such run, or more than one.

        >>> import tempfile
        >>> Client(tempfile.mkdtemp()).run("qwen-sft")
        Traceback (most recent call last):
            ...
        prime_train.core.errors.UsageError: there is no run qwen-sft
        """
        return Run(self._home, find(self._home.store(), name).run.run_id)

    def validate(self, *paths: str | Path) -> tuple[Finding, ...]:
        """Every mistake in these configs, or in all that lie in these folders, in order. Nothing is asked outside of this machine.

        >>> import pathlib, tempfile
        >>> config = pathlib.Path(tempfile.mkdtemp(), "sft.yaml")
        >>> _ = config.write_text("name: sft\\ntrainer: {command: python train.py, steps: -1}\\nbudget: {usd: 5}\\n")
        >>> [(finding.severity.value, finding.line) for finding in Client().validate(config) if "steps" in finding.message]
        [('error', 2)]
        """
        found, _ = found_in(matters([Path(path) for path in paths]))
        return found

    def offers(self, config: str | Path) -> Ranking:
        """The machines that a launch of this config would be tried on, in that order, and why the others were left out. Prices are dollars
        an hour for the whole machine. Raises InvalidConfig, and OutsideError where the provider does not answer."""
        return dry_run.ranking(self._home, checked(self._home, Path(config)).spec)

    def launch(self, config: str | Path, *, name: str | None = None) -> "Run":
        """Check the config, pack its working tree into the bucket and queue the run. `name`: another than the config's.

        Paths in the config are seen from the current folder, as on the command line. Raises InvalidConfig where the config has mistakes,
        UsageError where `name` is no name, and OutsideError where store or bucket do not answer; then nothing was queued.
        """
        return Run(self._home, launch_checked(self._home, checked(self._home, Path(config), name=name)).run_id)


@dataclass(frozen=True)
class Run:
    """One run. Every method asks the control plane anew."""

    _home: Home
    id: str

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def status(self) -> RunStatus:
        """How it stands now: state, steps, money, attempts. Seconds are those of the control plane's clock."""
        return status(self._home.store(), self.id)

    def stop(self, *, now: bool = False) -> RunStatus:
        """Ask it to save, upload and end; with `now`, to end at once. Returns how it stands as that is asked, not when it is done.
        Raises UsageError where it is over."""
        stop(self._home, self.id, now=now)
        return self.status()

    def resume(
        self,
        *,
        usd: float | None = None,
        hours: float | None = None,
        deadline: str | None = None,
        config: str | Path | None = None,
    ) -> RunStatus:
        """Let it go on from its newest checkpoint after it has ended.

        `usd`, `hours`, `deadline` (such as `2026-12-01T18:00+01:00`): new limits, for all attempts together. `config`: the spec and the
        code to go on with, as they are here now. Raises UsageError where it is not over, a limit is none or its budget is spent, and
        InvalidConfig.
        """
        given = {Limit.USD: usd, Limit.HOURS: hours, Limit.DEADLINE: deadline}
        limits = {limit: value for limit, value in given.items() if value is not None}
        if deadline is not None:
            try:
                parse_deadline(deadline)
            except ValueError as error:
                raise UsageError(f"deadline {error}") from error
        resume(self._home, self.id, limits, config=Path(config) if config is not None else None)
        return self.status()

    def history(self) -> list[HistoryEvent]:
        """Everything that happened to it, oldest first; `at_s` is a Unix time."""
        return list(self._home.store().history(self.id))

    def follow(self, *, every_s: float = FOLLOW_EVERY_S) -> Iterator[HistoryEvent]:
        """What happens to it, from its launch on, until it is over. Asks every `every_s` seconds.

        A control plane has to serve meanwhile: nothing happens without one.
        """
        store, seen, pause = self._home.store(), 0, threading.Event()
        while True:
            # Read before the history: the last event is then among it.
            is_over = find(store, self.id).run.is_over
            history = store.history(self.id)
            yield from history[seen:]
            seen = len(history)
            if is_over:
                return
            pause.wait(every_s)

    def logs(self, *, lines: int = LOG_LINES, warn: Callable[[str], None] = _ignore) -> str:
        """The last lines of its newest log, on its machine or as kept when an attempt ended; empty where there is none. `warn` is called
        with why a machine could not be reached."""
        return log_end(self._home, find(self._home.store(), self.id), lines, warn).text

    def diagnose(self, *, warn: Callable[[str], None] = _ignore) -> RunDiagnosis:
        """What happened to it and why. `warn` is called with what could not be looked at."""
        return diagnose(self._home, self.id, warn)

    def checkpoints(self) -> list[Checkpoint]:
        """Its checkpoints in the bucket, newest first. Sizes are bytes."""
        return checkpoint_list.rows_of(checkpoint_list.look(self.id, None, self._home))

    def _repr_html_(self) -> str:
        """As notebooks show it. What machines wrote is escaped."""
        now = self.status()
        rows = {
            "state": f"{now.state}: {now.why}" if now.why else now.state,
            "step": now.figures.steps_said,
            "spent": now.money,
            "attempts": f"{now.attempts} (restarts: {now.causes})",
            "heartbeat": now.heartbeat,
        }
        cells = "".join(f"<tr><th style='text-align:left'>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in rows.items())
        return f"<table><caption>{escape(now.run)}</caption>{cells}</table>"
