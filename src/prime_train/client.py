"""Python interface of prime-train: the same operations as the command line, with typed results and one family of errors.

    from prime_train.client import Client

    client = Client()
    run = client.launch("configs/demo.yaml")
    for event in run.follow():
        print(event.at_s, event.kind, event.text)
    print(run.status().durable_step, run.status().spent_usd)

A client works with the control plane that its environment names: the one in the home folder of this machine (`PRIME_TRAIN_HOME`, or
`~/.prime-train`), or a remote one (`PRIME_TRAIN_STORE` and `PRIME_TRAIN_MASTER_KEY`). The client itself decides nothing and rents nothing:
it writes requests, and the control plane carries them out.

Errors, all importable from this module:

- `UsageError`: the request cannot be carried out; `fix` states what to do instead.
- `InvalidConfig`: a config has mistakes; `findings` lists each with its line.
- `OutsideError`: a store, bucket or provider failed. After a `TemporaryError` a retry may succeed, after a `PermanentError` it will not.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from prime_train.operations.archive import archive
from prime_train.operations.checkpoints import Row as Checkpoint
from prime_train.operations.diagnose import RunDiagnosis, diagnose
from prime_train.operations.launching import dry_run
from prime_train.operations.launching.launch_config import InvalidConfig, checked, launch_checked, settings_of
from prime_train.operations.page import run_page
from prime_train.operations.resume import resume
from prime_train.operations.run_filter import RunFilter
from prime_train.operations.run_logs.logs import LogChoice, log_end
from prime_train.operations.run_lookup import find
from prime_train.operations.status import status, statuses
from prime_train.operations.stop import stop
from prime_train.operations.validate import found_in
from prime_train.reports.pages import run_page_html
from prime_train.reports.pages.markup import shown
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


def _ignore(_: str) -> None:
    """Discard a warning: the default where a caller does not ask for warnings."""


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


class Client:
    """A client for the control plane that `home` or the environment names.

    `home`: the folder of a control plane on this machine; by default `PRIME_TRAIN_HOME`, or `~/.prime-train`. `environment`: variables to
    read in place of this process's own, such as `PRIME_TRAIN_STORE`. Creating a client sends no request and makes no folder.

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
        archived: bool = False,
        runs_max: int = RUNS_MAX,
    ) -> list[RunStatus]:
        """Return the status of the newest `runs_max` runs that match all filters, newest first; without filters, of all runs.

        `state`: `training`, `failed` ..., or `active` or `ended`; with several, a run matches by any of them. `name`: a part of the run's
        id or of its config's name, or a pattern such as `qwen-*`. `tag`: one of the config's `tags`; with several, a run must have all of
        them. `since_s`: launched at most so many seconds ago. `archived`: archived runs too. Raises UsageError if a state is unknown,
        and OutsideError if the store does not answer.

        >>> import tempfile
        >>> Client(tempfile.mkdtemp()).runs(state="active", tag="ablation", since_s=86400)
        []
        """
        wanted = RunFilter(_words(state), name, _words(tag), since_s, archived=archived)
        return list(statuses(self._home.store(), wanted, runs_max=runs_max).runs)

    def run(self, name: str) -> "Run":
        """Return the run that `name` stands for: a run id, the start of one, or a config's name, then its live or else its newest run.

        Raises UsageError if no run matches, or more than one.

        >>> import tempfile
        >>> Client(tempfile.mkdtemp()).run("qwen-sft")
        Traceback (most recent call last):
            ...
        prime_train.core.errors.UsageError: there is no run qwen-sft
        """
        return Run(self._home, find(self._home.store(), name).run.run_id)

    def validate(self, *paths: str | Path) -> tuple[Finding, ...]:
        """Return every mistake in these configs, or in all configs in these folders, in order. Sends no request to another machine.

        >>> import pathlib, tempfile
        >>> config = pathlib.Path(tempfile.mkdtemp(), "sft.yaml")
        >>> _ = config.write_text("name: sft\\ntrainer: {command: python train.py, steps: -1}\\nbudget: {usd: 5}\\n")
        >>> [(finding.severity.value, finding.line) for finding in Client().validate(config) if "steps" in finding.message]
        [('error', 2)]
        """
        found, _ = found_in(matters([Path(path) for path in paths]))
        return found

    def offers(self, config: str | Path) -> Ranking:
        """Return the machines that a launch of this config would try, in that order, and why the other offers were left out. Prices are US
        dollars an hour for the whole machine. Raises InvalidConfig, and OutsideError if the provider does not answer."""
        return dry_run.ranking(self._home, checked(self._home, Path(config)).spec)

    def launch(self, config: str | Path, *, name: str | None = None, overrides: Mapping[str, object] | None = None) -> "Run":
        """Check the config, pack its working tree into the bucket and queue the run. `name`: a run name that replaces the config's;
        `overrides`: values that replace the config's, such as `{"trainer.steps": 5, "tags": ["try"]}`.

        Relative paths in the config start at the current folder, as on the command line. Raises InvalidConfig if the config has mistakes,
        UsageError if `name` is not a valid name, and OutsideError if store or bucket do not answer; in each case no run is queued.
        """
        settings = settings_of(overrides or {}, "overrides")
        return Run(self._home, launch_checked(self._home, checked(self._home, Path(config), name=name, settings=settings)).run_id)


@dataclass(frozen=True)
class Run:
    """One run. Every method reads the control plane anew."""

    _home: Home
    id: str

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def status(self) -> RunStatus:
        """Return the current status of the run: state, steps, money, attempts. Times are seconds of the control plane's clock."""
        return status(self._home.store(), self.id)

    def stop(self, *, now: bool = False) -> RunStatus:
        """Request that the run saves, uploads and ends; with `now`, that it ends at once. Returns the status right after the request,
        without waiting for the end. Raises UsageError if the run is over."""
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
        """Continue a run that has ended from its newest checkpoint.

        `usd`, `hours`, `deadline` (such as `2026-12-01T18:00+01:00`): new limits, for all attempts together. `config`: a config to continue
        with, read now together with its code. Raises UsageError if the run is not over, a limit is invalid or its budget is spent, and
        InvalidConfig if the config has mistakes.
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

    def archive(self, *, undo: bool = False) -> RunStatus:
        """Archive the ended run, so that lists leave it out, or with `undo` take it out of the archive. Its checkpoints stay as they are.
        Raises UsageError if the run is not over, or a machine of it is still paid for."""
        archive(self._home.store(), self.id, undo=undo)
        return self.status()

    def history(self) -> list[HistoryEvent]:
        """Return all events of the run, oldest first; `at_s` is a Unix time in seconds."""
        return list(self._home.store().history(self.id))

    def follow(self, *, every_s: float = FOLLOW_EVERY_S) -> Iterator[HistoryEvent]:
        """Yield the events of the run, from its launch on, until it is over. Reads the store every `every_s` seconds.

        A control plane must be running meanwhile; without one nothing happens and this iterator does not end.
        """
        store, seen, pause = self._home.store(), 0, threading.Event()
        while True:
            # Read the state before the history, so that the last event is in the history when the run is over.
            is_over = find(store, self.id).run.is_over
            history = store.history(self.id)
            yield from history[seen:]
            seen = len(history)
            if is_over:
                return
            pause.wait(every_s)

    def logs(
        self,
        *,
        lines: int | None = None,
        attempt: int | None = None,
        since_s: int | None = None,
        text: str = "",
        is_pattern: bool = False,
        warn: Callable[[str], None] = _ignore,
    ) -> str:
        """Return the last lines of the run's newest log, read from its machine or from the bucket if the attempt has ended; empty if there
        is no log.

        `lines`: the most lines to return; by default 40, or with `since_s` all lines written in that many last seconds. `attempt`: the
        number of the attempt whose log to read. `text`: only lines that contain it; with `is_pattern` it is a regular expression (RE2).
        `warn` is called with the reason if a machine cannot be reached. Raises UsageError if the run has no such attempt or the regular
        expression is invalid.
        """
        choice = LogChoice(lines, attempt, since_s, text, is_pattern=is_pattern)
        return log_end(self._home, find(self._home.store(), self.id), choice, warn).text

    def diagnose(self, *, warn: Callable[[str], None] = _ignore) -> RunDiagnosis:
        """Return what happened to the run and why. `warn` is called with each source that could not be read."""
        return diagnose(self._home, self.id, warn)

    def checkpoints(self) -> list[Checkpoint]:
        """Return the run's checkpoints in the bucket, newest first. Sizes are bytes."""
        return checkpoint_list.rows_of(checkpoint_list.look(self.id, None, self._home))

    def page(self) -> str:
        """Its page as one HTML document that needs nothing from elsewhere: picture, figures, attempts, money, log, checkpoints, diagnosis.
        What machines wrote is escaped."""
        return run_page_html(run_page(self._home, self.id))

    def _repr_html_(self) -> str:
        """Return the status as an HTML table for notebooks. Texts written by machines are escaped."""
        now = self.status()
        rows = {
            "state": f"{now.state}: {now.why}" if now.why else now.state,
            "step": now.figures.steps_said,
            "spent": now.money,
            "attempts": f"{now.attempts} (restarts: {now.causes})",
            "heartbeat": now.heartbeat,
        }
        cells = "".join(f"<tr><th style='text-align:left'>{shown(key)}</th><td>{shown(text)}</td></tr>" for key, text in rows.items())
        return f"<table><caption>{shown(now.run)}</caption>{cells}</table>"
