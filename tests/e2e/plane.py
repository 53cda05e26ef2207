"""A control plane of real processes, restarted like services of an init system, and one training run on
it.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.environment import BACKGROUND
from prime_train.providers.local.pods import LocalPods
from prime_train.providers.local.provider import WHOLE_MACHINE
from prime_train.runs.run import HistoryEvent, Run
from prime_train.runs.store import Store
from prime_train.stores.sqlite.store import SqliteStore
from tests.cli import shell
from tests.e2e.points import LOSE_FIRST, SAVED_STEP, Point
from tests.e2e.strikes import Strikes, Take
from tests.waiting import HANG_S, await_true

BIN = Path(sys.executable).parent
CRASH = Path(__file__).parent / "crash"
"""Folder of the module that kills processes at exact points of their work; to be put on PYTHONPATH."""
STEPS = 80
MATRIX_ROW = "kill matrix"
"""Name of the property under which a test passes its figures to the summary."""

CONFIG = """\
name: kill
rehearsed: waived
trainer:
  command: >-
    python -m prime_train.demo.train --steps 80 --save-every 25 --step-seconds 0.02 --out out
    --progress progress.jsonl --batch-size 16
  steps: 80
  resume: --resume-step {step}
  stop_s: 5
  code: {folder: TREE}
  progress: {file: progress.jsonl}
hardware: {open_files_min: 1024, disk_gib: 1}
setup:
  - echo setup-was-here
verification:
  - {path: data.json, exactly: 1, size_min: 100}
smoke:
  command: python -m prime_train.demo.train --steps 1 --out smoke --batch-size 16
  timeout_s: 60
checkpoints: {folder: out/checkpoints, sentinel: COMPLETE, keep: 1, every_steps: 25}
health: {heartbeat_s: 1, overdue_s: 3, silence_s: 5, first_heartbeat_s: 10, first_step_s: 60, stall_s: 20, settle_s: 3, drain_s: 20}
budget: {usd: 5, restarts_without_progress: 6}
"""


def is_left_alone(run: Run, now_s: int) -> bool:
    """Return whether the run is over, its machines are gone, and watchers have nothing to do for it now."""
    return run.is_at_rest and (run.next_check_s is None or run.next_check_s > now_s)


def await_saved(store: Store, point: str) -> None:
    """Wait for the moment to take the first machine: when the only active run can be resumed."""

    def is_saved() -> bool:
        record = [store.load(run.run_id) for run in store.list_runs() if not run.is_over]
        return any(one is not None and one.lease.committed_step >= SAVED_STEP for one in record)

    if point == LOSE_FIRST.name:
        await_true("a checkpoint is durable", is_saved)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Kept:
    """A process that is restarted whenever it dies."""

    name: str
    command: Sequence[str]
    env: dict[str, str]
    log: Path
    stopping: threading.Event = field(default_factory=threading.Event)
    may_run: threading.Event = field(default_factory=threading.Event)
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.may_run.set()
        self.thread = threading.Thread(target=self._keep, name=f"keep-{self.name}")
        self.thread.start()

    def _keep(self) -> None:
        while self.may_run.wait() and not self.stopping.is_set():
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    self.command, env=self.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )
            self.starts += 1
            self.process.wait()

    def take(self, pod: str) -> None:
        """Kill it, as a system without free memory would."""
        assert self.process is not None
        self.process.kill()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Keep it stopped during the block, and start it again afterwards."""
        self.may_run.clear()
        if self.process is not None:
            self.process.terminate()
            self.process.wait(HANG_S)
        try:
            yield
        finally:
            self.may_run.set()

    def stop(self) -> None:
        self.stopping.set()
        self.may_run.set()
        if self.process is not None:
            self.process.terminate()
        if self.thread is not None:
            self.thread.join(HANG_S)


@dataclass
class Plane:
    """The home of one control plane, and its processes."""

    home: Path
    env: dict[str, str]
    kept: list[Kept]

    @property
    def folder(self) -> Path:
        """Return the folder for files of the test."""
        return self.home.parent

    @property
    def started(self) -> str:
        """Return how often its processes were started."""
        return "+".join(str(kept.starts) for kept in self.kept)

    @property
    def store(self) -> SqliteStore:
        return SqliteStore(self.home / "control.sqlite")

    @property
    def bucket(self) -> Bucket:
        return open_bucket(self.env.get("PRIME_TRAIN_BUCKET") or (self.home / "bucket").as_uri(), self.env)

    @property
    def pods(self) -> LocalPods:
        return LocalPods(self.home / "pods")

    def cli(self, *args: str) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in self.env.items() if k not in ("PT_CRASH", "PYTHONPATH")}
        return shell.run([shell.PROGRAM, *args], Path.cwd(), env)

    def launch(self, config: Path) -> str:
        done = self.cli("run", str(config))
        assert done.returncode == 0, f"prime-train run: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return self.store.list_runs()[0].run_id

    def run(self, run_id: str) -> Run:
        record = self.store.load(run_id)
        assert record is not None
        return record.run

    def history(self, run_id: str) -> list[HistoryEvent]:
        return self.store.history(run_id)

    def await_end(self, run_id: str, *, limit_s: float = HANG_S) -> Run:
        """Wait until the run is over, every attempt settled and every pod gone."""
        await_true(f"{run_id} is over", lambda: self.run(run_id).is_over, limit_s=limit_s, every_s=0.2)
        # Looked at, not listed: who asks the provider makes it clear away what is dead, and that is the
        # watchers' to do.
        await_true(
            "every pod is gone",
            lambda: not list((self.home / "pods").glob("local-*")) and not self.processes(),
        )
        await_true(
            "the ledger is settled", lambda: all(a.ended_s is not None for a in self.run(run_id).attempts)
        )
        return self.run(run_id)

    def processes(self) -> list[int]:
        """Return the living processes of this control plane's pods."""
        marks = (
            [path.name for path in (self.home / "pods").glob("local-*")]
            if (self.home / "pods").exists()
            else []
        )
        return [
            p.pid
            for p in psutil.process_iter()
            if _mark(p).startswith("local-") and (_mark(p) in marks or str(self.home) in _home(p))
        ]

    def evidence(self) -> str:
        """Return what a person needs to analyse a failure."""
        parts = [
            f"== {path}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.home.parent.glob("*.log"))
        ]
        parts += [
            f"== {path}\n{path.read_text(errors='replace')[-1500:]}"
            for path in sorted((self.home / "pods").rglob("*.log"))
        ]
        for run in self.store.list_runs():
            parts += [f"{run.run_id} {run.state} {run.why}"] + [
                f"  {h.at_s} e{h.attempt} {h.kind}: {h.text}" for h in self.history(run.run_id)
            ]
        return "\n".join(parts)


def _mark(process: psutil.Process) -> str:
    return _environ(process).get("PRIME_TRAIN_POD", "")


def _home(process: psutil.Process) -> str:
    return _environ(process).get("PRIME_TRAIN_HOME", "")


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return {} if process.status() == psutil.STATUS_ZOMBIE else process.environ()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return {}


@contextmanager
def plane(
    folder: Path,
    points: Sequence[Point] = (),
    *,
    watcher: bool = False,
    settings: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[Plane]:
    """Run `prime-train serve` (with `watcher`: only its webhook, and `prime-train watch` beside it),
    restarted until the end.

    `settings`: environment variables of the control plane. `prefix`: a command that becomes `serve`, as
    `exec` does.
    """
    home, fired = folder / "home", folder / "fired"
    fired.mkdir(parents=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PRIME_")}
    # Strikes are planted by variables of the machine's environment, of which a run of somebody's gets none.
    env = {
        **own,
        "PRIME_TRAIN_HOME": str(home),
        "PYTHONPATH": str(CRASH),
        WHOLE_MACHINE: "1",
        BACKGROUND: "no",
        **(settings or {}),
    }
    serve = [
        *prefix,
        str(BIN / "prime-train"),
        "serve",
        "--port",
        str(free_port()),
        *(["--no-watch"] if watcher else []),
    ]
    kept = [Kept("plane", serve, env, folder / "serve.log")]
    if watcher:
        watch = [str(BIN / "prime-train"), "watch", "--interval", "1"]
        kept.append(Kept("watcher", watch, env, folder / "watch.log"))
    here = Plane(home, env, kept)
    takes: dict[str, Take] = {
        "machine": here.pods.preempt,
        **{process.name: process.take for process in kept},
    }
    with Strikes(takes, lambda name: await_saved(here.store, name)) as strikes:
        env["PT_CRASH"] = json.dumps([point.row(fired, strikes.port) for point in points])
        kept[0].start()
        try:
            await_true("serve is up", (home / "serve.json").exists)
            for other in kept[1:]:
                other.start()
            yield here
        finally:
            for process in reversed(kept):
                process.stop()
            for pod in here.pods.list():
                here.pods.terminate(pod.pod_id)


def write_config(folder: Path, text: str = CONFIG, *, step_s: float = 0.02) -> Path:
    """Write the config and the working tree."""
    tree = folder / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    (tree / "data.json").write_text(json.dumps({"rows": ["a row of data"] * 20}))
    config = folder / "kill.yaml"
    config.write_text(
        text.replace("TREE", str(tree)).replace("--step-seconds 0.02", f"--step-seconds {step_s}")
    )
    return config
