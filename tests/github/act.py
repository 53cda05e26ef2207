"""Runs workflows with act, without containers, and reports what every step did.

act permits some things that GitHub does not; those that can be detected are detected here (`limits_broken`),
and `scratch` handles the rest: no INPUT_* for a composite action's scripts, a clean environment, tokens with
a job's own permissions. A job that act skips, for its `if` or for a label that it does not know, is not in
`Ran.jobs`, so check for each job that is expected.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.tools import GO_BIN, program
from tests.waiting import HANG_S

VERSION = "v0.2.87"
SUMMARY_BYTES_MAX = 1 << 20
ANNOTATIONS_MAX = 10
LEVELS = ("error", "warning", "notice")
DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}
PROPERTY = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
MUTE_MAX = 3
SETTINGS = ("--json", "--no-cache-server", "-P", "ubuntu-latest=-self-hosted")
REPOSITORY = "PRIME_TRAIN_TESTS_REPOSITORY"
"""Variable by which the replacement of checkout finds the repository."""
PATH = "/usr/local/bin:/usr/bin:/bin"


def act_program() -> str | None:
    """Return $ACT, or act from PATH or from where `go install` puts it."""
    return program("act", GO_BIN / "act")


needs_act = pytest.mark.skipif(
    act_program() is None,
    reason=f"there is no act (github.com/nektos/act@{VERSION}) on PATH, in $ACT or in ~/go/bin: make tools",
)


@dataclass(frozen=True)
class Annotation:
    level: str
    message: str
    file: str
    line: int | None
    title: str


@dataclass
class Step:
    """A step. `place`: its id or number, after those of the steps that contain it: validate/verb. `result`:
    success, failure or skipped.
    """

    job: str
    place: str
    result: str = ""
    took_s: float = 0.0
    text: str = ""
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    annotations: list[Annotation] = field(default_factory=list)


@dataclass
class Ran:
    """The results of a workflow. `jobs`: each job that ran, with its result; those of a matrix with several
    values end in -1, -2 ...
    """

    code: int
    log: str
    jobs: dict[str, str]
    steps: list[Step]

    def step(self, job: str, place: str) -> Step:
        found = [step for step in self.steps if (step.job, step.place) == (job, place)]
        assert len(found) == 1, (
            f"{len(found)} steps {place} in {job}, of "
            f"{[(step.job, step.place) for step in self.steps]}\n{self.reported}"
        )
        return found[0]

    def has(self, job: str, place: str) -> bool:
        return any((step.job, step.place) == (job, place) for step in self.steps)

    @property
    def reported(self) -> str:
        """Return what a person reads in the log."""
        return (
            "".join(f"--- {step.job} {step.place}: {step.result}\n{step.text}" for step in self.steps)
            or self.log
        )


@dataclass(frozen=True)
class Act:
    """Calls of act. `folders`: replacements of a repository at a ref, by "owner/name@ref"; nothing is
    fetched. `home` is its own, because act stores a lot. `path`: the folders with the steps' programs.
    """

    program: str
    home: Path
    folders: Mapping[str, Path]
    path: str = PATH

    def run(
        self,
        repository: Path,
        workflow: str,
        event: str,
        payload: Mapping[str, Any],
        *,
        api_url: str = "http://127.0.0.1:9",
        actor: str = "octocat",
        secrets: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run a workflow. `workflow`: the name of its file. The default `api_url` is one at which no server
        listens.
        """
        self._prepare()
        event_file = self.home / "event.json"
        event_file.write_text(json.dumps(payload))
        reported = {"GITHUB_API_URL": api_url, REPOSITORY: str(repository), **(env or {})}
        command = [
            self.program,
            event,
            "-W",
            f".github/workflows/{workflow}",
            "-e",
            str(event_file),
            "-a",
            actor,
            *SETTINGS,
        ]
        command += [
            *_options("--secret", secrets),
            *_options("--var", variables),
            *_options("--env", reported),
        ]
        command += _options(
            "--local-repository", {name: str(folder) for name, folder in self.folders.items()}
        )
        # Not what this process has in its own environment: it would leak into every step.
        environment = {"HOME": str(self.home), "PATH": self.path, "LANG": "C.UTF-8"}
        ran = parsed(*_run(command, repository, environment))
        for _ in range(MUTE_MAX):
            if not _is_mute(ran):
                break
            ran = parsed(*_run(command, repository, environment))
        assert ran.jobs or not ran.code, f"act did not start:\n{ran.log}"
        broken = list(limits_broken(ran.steps))
        assert not broken, "\n".join(broken)
        return ran

    def _prepare(self) -> None:
        """Write act's settings; without a file it would ask which images to use."""
        settings = self.home / ".config" / "act" / "actrc"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.touch()


def _is_mute(ran: Ran) -> bool:
    """Return whether act has lost the output of the first step and nothing followed, which happens on a busy
    machine if a step fails at once.
    """
    return len(ran.steps) == 1 and ran.steps[0].result == "failure" and not ran.steps[0].text


def _options(name: str, values: Mapping[str, str] | None) -> Iterator[str]:
    for key, value in (values or {}).items():
        yield from (name, f"{key}={value}")


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Return exit code, output and errors. A command that runs too long is ended, with all processes that it
    started.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, stdout, stderr


def parsed(code: int, stdout: str, stderr: str) -> Ran:
    steps: dict[tuple[str, str], Step] = {}
    jobs: dict[str, str] = {}
    for row in _rows(stdout):
        job = str(row.get("job", "")).strip()
        if "jobResult" in row:
            jobs[_short(job)] = row["jobResult"]
        if row.get("stage") == "Main" and "stepID" in row:
            place = "/".join(row["stepID"])
            _add(steps.setdefault((job, place), Step(_short(job), place)), row)
    return Ran(code, f"{stdout}\n{stderr}", jobs, list(steps.values()))


def _rows(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _short(job: str) -> str:
    """Return the job's name without the workflow's name before it."""
    return job.partition("/")[2]


def _add(step: Step, row: Mapping[str, Any]) -> None:
    command = row.get("command")
    if "stepResult" in row:
        step.result, step.took_s = row["stepResult"], row.get("executionTime", 0) / 1e9
    if row.get("raw_output"):
        step.text += row["msg"]
    elif command == "set-output":
        step.outputs[row["name"]] = row["arg"]
    elif command == "summary":
        step.summary += row["content"]
    elif command in LEVELS:
        step.annotations.append(_annotation(row["raw"]))
        step.text += row["raw"]


def _annotation(raw: str) -> Annotation:
    """Return the text of an annotation as GitHub's runner parses it; act unescapes it in arbitrary order."""
    head, _, message = raw.strip().removeprefix("::").partition("::")
    level, _, about = head.partition(" ")
    output = {
        name: _plain(value, PROPERTY) for name, _, value in (part.partition("=") for part in about.split(","))
    }
    line = output.get("line", "")
    return Annotation(
        level,
        _plain(message, DATA),
        output.get("file", ""),
        int(line) if line else None,
        output.get("title", ""),
    )


def _plain(text: str, escapes: Mapping[str, str]) -> str:
    for escaped, plain in escapes.items():
        text = text.replace(escaped, plain)
    return text


def limits_broken(steps: Iterable[Step]) -> Iterator[str]:
    """Yield what GitHub would drop or not show, although act does."""
    for step in steps:
        if len(step.summary.encode()) > SUMMARY_BYTES_MAX:
            yield f"{step.job} {step.place}: a summary of {len(step.summary.encode())} bytes is dropped"
        for level, count in Counter(annotation.level for annotation in step.annotations).items():
            if count > ANNOTATIONS_MAX:
                yield (
                    f"{step.job} {step.place}: of {count} annotations of level {level}, "
                    f"{ANNOTATIONS_MAX} "
                    "are shown"
                )
