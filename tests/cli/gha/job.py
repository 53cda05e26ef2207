"""A step of a job as on GitHub: a real checkout, the event's file, a token of the job, and a fake GitHub with
all of it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.shell import PROGRAM, Shell, run
from tests.fakes.github import FakeGitHub
from tests.github.scratch import commit, git

GOOD = """\
name: small
trainer:
  command: python train.py --resume auto
  steps: 20
  code: {folder: "."}
checkpoints: {folder: out, sentinel: COMPLETE, every_steps: 5}
hardware: {open_files_min: 256, disk_gib: 1, usd_per_hour_max: 2}
budget: {usd: 5, hours: 2}
"""
WRITES = {"contents": "read", "pull-requests": "write", "deployments": "write", "statuses": "write"}
_OUTPUT = re.compile(r"^([a-z-]+)<<(\S+)\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Did:
    """The output and the results of a step."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str

    @property
    def annotations(self) -> list[tuple[str, str]]:
        """Return the level and the rest of each annotation."""
        found = [re.match(r"::(error|warning|notice)(.*)", line) for line in self.log.splitlines()]
        return [(one[1], one[2]) for one in found if one is not None]


@dataclass(frozen=True)
class Job:
    """A job. `folder`: the checkout, whose history the fake's repository has."""

    fake: FakeGitHub
    folder: Path
    repo: str
    permissions: dict[str, str] = field(default_factory=lambda: dict(WRITES))

    def commit(self, files: Mapping[str, str], branch: str = "main") -> str:
        """Commit and push the files; later steps check this commit out."""
        current = git(self.folder, "rev-parse", "--abbrev-ref", "HEAD")
        if current != branch:
            exists = git(self.folder, "branch", "--list", branch)
            git(self.folder, "checkout", "--quiet", *(() if exists else ("-b",)), branch)
        sha = commit(self.folder, files, "change")
        self.fake.load(self.repo, str(self.folder))
        return sha

    def event(self, name: str) -> dict[str, Any]:
        """Set the event to the newest one of that name."""
        return dict(next(each["payload"] for each in reversed(self.fake.events()) if each["name"] == name))

    def run(
        self, verb: str, event_name: str, payload: object, *, token: str | None = None, **env: str
    ) -> Did:
        out, summary, event = (self.folder.parent / name for name in ("output", "summary", "event.json"))
        for file in (out, summary):
            file.write_text("")
        event.write_text(json.dumps(payload))
        shell = Shell(self.folder.parent)
        job = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTOR": "ann",
            "GITHUB_API_URL": self.fake.url,
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(out),
            "GITHUB_REPOSITORY": self.repo,
            "GITHUB_RUN_ID": "1001",
            "GITHUB_SHA": git(self.folder, "rev-parse", "HEAD"),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_TOKEN": token if token is not None else self.fake.job_token(self.repo, self.permissions),
            "RUNNER_ENVIRONMENT": "self-hosted",
        }
        done = run([PROGRAM, "gha", verb], self.folder, shell.env | job | env, errors="replace")
        outputs = {found[1]: found[3] for found in _OUTPUT.finditer(out.read_text())}
        return Did(done.returncode, done.stdout + done.stderr, outputs, summary.read_text())
