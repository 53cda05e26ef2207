"""The GitHub job in which this process is a step: its environment, outputs, summary and annotations."""

import functools
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ParamSpec

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.events import Trigger, read_event
from prime_train.terminal.output import print_command
from prime_train.text.explained_errors import explained, is_debugging
from prime_train.text.redaction import masks
from prime_train.text.safe import without_commands

P = ParamSpec("P")
SUMMARY_BYTES_MAX = 1_000_000
"""Maximum size in bytes of the job summary; GitHub discards a step's summary entirely if it is larger than 1
MiB.
"""
CUT = "\n\n… truncated: a summary cannot be longer.\n"


@dataclass(frozen=True)
class Job:
    """A GitHub Actions job. `repository`: owner/name; `commit`: the commit that the event is about; `token`:
    may be empty.
    """

    repository: str
    event_name: str
    event_file: Path | None
    commit: str
    run_id: str
    actor: str
    api_url: str
    web_url: str
    token: str = field(repr=False)
    output_file: Path | None = None
    summary_file: Path | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Job":
        """Read the job from environment variables. Raises UsageError outside GitHub Actions."""
        repository = environment.get("GITHUB_REPOSITORY", "")
        if not repository:
            raise UsageError(
                "GITHUB_REPOSITORY is not set: this is not a job of GitHub Actions",
                fix="outside GitHub Actions, use prime-train without gha",
            )
        return cls(
            repository,
            environment.get("GITHUB_EVENT_NAME", ""),
            _path(environment, "GITHUB_EVENT_PATH"),
            environment.get("GITHUB_SHA", ""),
            environment.get("GITHUB_RUN_ID", ""),
            environment.get("GITHUB_ACTOR", ""),
            environment.get("GITHUB_API_URL") or "https://api.github.com",
            (environment.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/"),
            environment.get("GITHUB_TOKEN", ""),
            _path(environment, "GITHUB_OUTPUT"),
            _path(environment, "GITHUB_STEP_SUMMARY"),
        )

    def trigger(self) -> Trigger:
        """Return the event that started the job. Raises UsageError as `read_event` does."""
        return Trigger(
            self.repository, self.commit, self.run_id, read_event(self.event_name, self.event_file)
        )

    @property
    def url(self) -> str:
        """The URL of the workflow run's page, or "" if the run's id is unknown."""
        return f"{self.web_url}/{self.repository}/actions/runs/{self.run_id}" if self.run_id else ""

    def output(self, **values: object) -> None:
        """Set outputs of the step; `_` in a name becomes `-`. The random delimiter keeps a value from
        injecting a second output.
        """
        for name, value in values.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            mark = f"end-{secrets.token_hex(16)}"
            self._append(self.output_file, f"{name.replace('_', '-')}<<{mark}\n{text}\n{mark}\n")

    def summary(self, text: str) -> None:
        """Append Markdown to the job summary, truncated to `SUMMARY_BYTES_MAX` bytes."""
        data = text.encode("utf-8", "replace")
        if len(data) > SUMMARY_BYTES_MAX:
            data = (
                data[: SUMMARY_BYTES_MAX - len(CUT.encode())].decode("utf-8", "ignore").encode()
                + CUT.encode()
            )
        self._append(self.summary_file, data.decode() + "\n")

    def notice(self, text: str) -> None:
        _command("notice", text)

    def warning(self, text: str) -> None:
        _command("warning", text)

    def _append(self, file: Path | None, text: str) -> None:
        if file is not None:
            with file.open("a", encoding="utf-8") as opened:
                opened.write(text)


def job_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of the step with the providers' credentials that it has in one value. Everything
    secret in it is masked in the log from now on. Raises UsageError if that value, or the operator's list of
    secrets, is not valid.
    """
    from prime_train.providers.in_one_value import with_credentials

    given = with_credentials(environment, partial(_command, "warning"))
    hide(given)
    return given


def hide(environment: Mapping[str, str]) -> None:
    """Have GitHub mask the values of secrets in the log. By default it masks only secrets configured in the
    repository. Raises UsageError if the operator's list of secrets is not valid.
    """
    from prime_train.app.secret_variables import secret_variables

    for name in secret_variables(environment) if environment.get("GITHUB_ACTIONS") == "true" else ():
        for text in masks(environment.get(name, "")):
            _command("add-mask", text)


def annotated(verb: Callable[P, Exit]) -> Callable[P, Exit]:
    """Wrap a command so that in a GitHub job an exception becomes an error annotation on the page of the
    workflow run, not only a line in the step's log.
    """

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> Exit:
        try:
            return verb(*args, **kwargs)
        except Exception as error:
            if os.environ.get("GITHUB_ACTIONS") != "true":
                raise
            code, message = explained(error, debug=is_debugging(os.environ))
            failed(message)
            return code

    return run


def failed(text: str) -> None:
    """Print the reason why the step fails as an error annotation."""
    _command("error title=prime-train", text)


def _command(name: str, text: str) -> None:
    sys.stdout.flush()
    line = without_commands(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print_command(f"::{name}::{line.encode('utf-8', 'replace').decode()}")


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    named = environment.get(name)
    return Path(named) if named else None
