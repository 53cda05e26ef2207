"""Launches the fake by the trainer's own command line, and inspects its folder."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import LogRule, Trainer, classify, trainer_for
from prime_train.trainers.prime_rl.stale_outputs import DEPTH, to_move_aside
from prime_train.trainers.prime_rl.trainer import PORT
from prime_train.trainers.stale_outputs import Move
from tests.fakes.prime_rl import uv_in
from tests.trainers.prime_rl.prime_rl_spec import FOLDER, prime_rl_spec

END_S_MAX = 60


@dataclass(frozen=True)
class Ended:
    code: int
    lines: list[str]


@dataclass
class Machine:
    """A disk with a working tree; `spec` saves every fifth of twenty steps."""

    disk: Path
    spec: RunSpec = field(default_factory=lambda: prime_rl_spec(checkpoints={"every_steps": 5}))
    toml: str = '[model]\nname = "Qwen/Qwen3-0.6B"\n'
    more: Mapping[str, str] = field(default_factory=dict)
    """Further variables of its environment."""

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "rl.toml").write_text(self.toml)
        self.uv = uv_in(self.disk / "bin")

    @property
    def work(self) -> Path:
        return self.disk / "tree"

    @property
    def run(self) -> Path:
        return self.work / FOLDER

    @property
    def checkpoints(self) -> Path:
        return self.run / "checkpoints"

    def line(self, step: int | None) -> str:
        folder = str(self.checkpoints / f"step_{step}") if step is not None else None
        return trainer_for(self.spec).command(
            self.spec, checkpoints=str(self.checkpoints), resume_step=step, resume_folder=folder
        )

    def environment(self, *, port: int | None = None, dies: str = "") -> dict[str, str]:
        ours = trainer_for(self.spec).environment(self.spec, attempt=1, run_id="tiny-1")
        environment = {PORT: str(port)} if port is not None else {}
        return {**os.environ, **ours, **self.uv, **environment, **self.more, "FAKE_RL_DIES": dies}

    def launch(self, step: int | None = None, **changes: Any) -> Ended:
        """Run it to its end."""
        return self.launch_as(self.line(step), **changes)

    def launch_as(self, line: str, **changes: Any) -> Ended:
        env = self.environment(**changes)
        words = ["/bin/sh", "-c", line]
        ended = subprocess.run(
            words, check=False, cwd=self.work, env=env, capture_output=True, text=True, timeout=END_S_MAX
        )
        return Ended(ended.returncode, (ended.stdout + ended.stderr).splitlines())

    @contextmanager
    def launched(self, **changes: Any) -> Iterator["subprocess.Popen[str]"]:
        """Start it, for a launch that does not end by itself."""
        env = self.environment(**changes)
        process = subprocess.Popen(
            ["/bin/sh", "-c", self.line(None)], cwd=self.work, env=env, stdout=subprocess.PIPE, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def listing(self) -> list[str]:
        found = (path.relative_to(self.run) for path in sorted(self.run.rglob("*")))
        return [path.as_posix() for path in found if len(path.parts) <= DEPTH]

    def tidy(self, step: int | None, *, attempt: int = 2) -> tuple[Move, ...]:
        """Move aside what would hinder a launch."""
        moves = to_move_aside(self.listing(), step, attempt=attempt)
        for move in moves:
            target = self.run / move.target
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.run / move.source).rename(target)
        return moves

    def cause(self, ended: Ended, *, code: int | None = None, resumed: bool = False) -> Cause:
        found = {path: self.work / path for path in self.trainer.log_files(self.spec)}
        logs: Mapping[str, list[str]] = {
            name: path.read_text().splitlines() for name, path in found.items() if path.exists()
        }
        lines = self.trainer.last_lines(self.spec, logs, ended.lines)
        return classify(lines, self.rules, code=ended.code if code is None else code, resumed=resumed)[0]

    @property
    def trainer(self) -> Trainer:
        return trainer_for(self.spec)

    @property
    def rules(self) -> tuple[LogRule, ...]:
        return self.trainer.log_rules(self.spec)

    def made(self) -> list[int]:
        """Return the steps that the trainer has reported, as prime-train's reader parses them, in order."""
        reader = self.trainer.reader(self.spec)
        rows = (reader.read(line) for line in (self.run / "metrics.jsonl").read_text().splitlines())
        return [row.step for row in rows if row is not None and row.loss is not None]
