"""Plays one history: a run on real processes, the faults of its plan, and the check of the promises at its
end.
"""

import json
import random
import resource
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from prime_train.runs.run import Run
from tests.chaos.disks import flip_bit, full, small_disk
from tests.chaos.faults import Fault, Kind, Plan, Trainer
from tests.chaos.intermediary import ANSWERS
from tests.chaos.older_rows import make_older
from tests.chaos.promises import Ending, check
from tests.e2e.plane import BIN, CONFIG, Kept, Plane, plane, write_config
from tests.fakes.faulty_proxy import FaultyProxy
from tests.waiting import HANG_S, await_true

CLOCK = Path(__file__).parent / "clock"
CONNECTIONS = 1100
DESCRIPTORS = ("sh", "-c", 'ulimit -n 1024; exec "$0" "$@"')
"""Command prefix that limits the open files of a control plane to fewer than the connections that are held
open.
"""
STEP_S = 0.15
SAVE_EVERY = 10
HEALTH = (
    "health: {heartbeat_s: 1, overdue_s: 20, silence_s: 40, first_heartbeat_s: 60, first_step_s: 120, "
    "stall_s: 120, settle_s: 3, drain_s: 20}"
)
"""Health limits longer than any fault lasts and than a busy machine takes, so that no attempt may be replaced
because of a temporary fault.
"""
FAILS_AT = 47
"""The step at which a trainer of that kind fails."""
TRAIN = """\
python -m prime_train.demo.train --steps 80 --save-every 10 --step-seconds 0.15 --out out --progress progress.jsonl --batch-size 16 "$@"\
"""
SCRIPTS = {
    Trainer.DELETES_FOLDER: f"{TRAIN} && rm -rf out\n",
    Trainer.CRASHES_AT_END: f"{TRAIN} && kill -SEGV $$\n",
    Trainer.CRASHES_AT_STEP: f"{TRAIN} --fail-at-step {FAILS_AT}\n",
}
NO_SENTINEL = "NEVER"
UPLOAD_USD = 0.003
"""Dollars for keeping a machine for its last upload: of about 20 seconds."""


@dataclass
class History:
    """A control plane, its run, and the clocks of its processes. `watchers`: those with a clock of their
    own.
    """

    plan: Plan
    here: Plane
    clocks: Path
    run_id: str
    began_s: float
    between: FaultyProxy | None = None
    """What agents reach the control plane through; None: they reach it themselves."""
    watchers: list[Kept] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def strike(self, fault: Fault) -> None:
        """Let one fault happen, and return when it is over."""
        _STRIKES[fault.kind](self, fault)
        self.done.append(str(fault))

    @property
    def run(self) -> Run:
        return self.here.run(self.run_id)

    def process(self, mark: str) -> psutil.Process | None:
        """Return a process of the current machine whose command line contains that mark."""
        for process in self.here.processes():
            with suppress(psutil.Error):
                found = psutil.Process(process)
                if mark in " ".join(found.cmdline()):
                    return found
        return None

    def set_clock(self, name: str, ahead_s: float) -> Path:
        file = self.clocks / name
        file.with_suffix(".new").write_text(str(ahead_s))
        return file.with_suffix(".new").replace(file)


def play(plan: Plan, folder: Path, reference: str) -> list[str]:
    """Play the history in `folder`, which must be empty. Return the broken promises; empty if every promise
    held.
    """
    _raise_limit()
    clocks = folder / "clocks"
    clocks.mkdir()
    (clocks / "serve").write_text("0")
    clock_of = json.dumps({"prime-train serve|prime-train watch --interval 1$": str(clocks / "serve")})
    settings = {"PYTHONPATH": str(CLOCK), "PT_CLOCKS": clock_of}
    with ExitStack() as record:
        if plan.has(Kind.FILL_DISK):
            record.enter_context(small_disk(folder / "home"))
        between = record.enter_context(FaultyProxy("")) if plan.has(Kind.ANSWER_IN_PLACE) else None
        if between is not None:
            settings["PRIME_TRAIN_URL"] = between.url
        here = record.enter_context(
            plane(folder, watcher=plan.two_processes, settings=settings, prefix=DESCRIPTORS)
        )
        if between is not None:
            between.back = f"http://127.0.0.1:{_port(here)}"
        began_s = time.monotonic()
        run_id = here.launch(_config(folder, plan))
        history = History(plan, here, clocks, run_id, began_s, between)
        try:
            await_true(
                "a first checkpoint is durable", lambda: _is_saved(here, run_id) or here.run(run_id).is_over
            )
            _strike_all(history)
            run = here.await_end(run_id)
            return check(Ending(plan, here, run, reference, time.monotonic() - began_s))
        except AssertionError as error:
            return [f"{error}\n{here.evidence()}"]
        finally:
            for watcher in history.watchers:
                watcher.stop()


def _config(folder: Path, plan: Plan) -> Path:
    text = CONFIG.replace("--save-every 25", f"--save-every {SAVE_EVERY}").replace(
        "every_steps: 25", f"every_steps: {SAVE_EVERY}"
    )
    lines = [HEALTH if line.startswith("health:") else line for line in text.splitlines()]
    config = write_config(folder, "\n".join(lines) + "\n", step_s=STEP_S)
    if (script := SCRIPTS.get(plan.trainer)) is not None:
        (folder / "tree" / "train.sh").write_text(script)
        begin, end = config.read_text().split("  command: >-\n", 1)
        rest = end.split("\n", 2)[2]
        config.write_text(f"{begin}  command: sh train.sh\n{rest}")
    text = config.read_text()
    if plan.trainer is Trainer.NEVER_COMPLETE:
        text = text.replace("sentinel: COMPLETE", f"sentinel: {NO_SENTINEL}")
        text = text.replace("budget: {", f"budget: {{upload_usd: {UPLOAD_USD}, ")
    config.write_text(text.replace("usd: 5,", f"usd: {plan.budget_usd or 5},"))
    return config


def _is_saved(here: Plane, run_id: str) -> bool:
    """Return whether a first checkpoint is durable, or has begun, if none ever will be."""
    record = here.store.load(run_id)
    if record is None:
        return False
    heartbeat = record.lease.heartbeat
    return record.lease.committed_step >= SAVE_EVERY or (
        heartbeat is not None and heartbeat.step > SAVE_EVERY and bool(heartbeat.unsaved)
    )


def _strike_all(history: History) -> None:
    """Let every fault happen at its time, unless the run is over by then."""
    start_s = time.monotonic()
    for fault in history.plan.faults:
        threading.Event().wait(max(0.0, start_s + fault.at_s - time.monotonic()))
        if history.run.is_over:
            return
        history.strike(fault)


def _raise_limit() -> None:
    """Raise this process's limit of open files for the connections that it holds open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# ---------------------------------------------------------------- faults

_Strike = Callable[[History, Fault], None]


def _kill_machine(history: History, _: Fault) -> None:
    attempt = history.run.current_attempt
    if attempt is not None and attempt.pod_id is not None:
        history.here.pods.preempt(attempt.pod_id)


def _kill(mark: str) -> _Strike:
    def strike(history: History, _: Fault) -> None:
        process = history.process(mark)
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    return strike


def _kill_kept(index: int) -> _Strike:
    def strike(history: History, _: Fault) -> None:
        history.here.kept[min(index, len(history.here.kept) - 1)].take("")

    return strike


def _frozen(process: psutil.Process | None, seconds: float) -> None:
    if process is None:
        return
    with suppress(psutil.NoSuchProcess):
        process.suspend()
        threading.Event().wait(seconds)
        process.resume()


def _freeze_serve(history: History, fault: Fault) -> None:
    served = history.here.kept[0].process
    _frozen(psutil.Process(served.pid) if served is not None and served.poll() is None else None, fault.size)


def _freeze_agent(history: History, fault: Fault) -> None:
    _frozen(history.process("prime_agent"), fault.size)


def _step_clock(history: History, fault: Fault) -> None:
    history.set_clock("serve", fault.size)


def _skewed(history: History, fault: Fault) -> Mapping[str, str]:
    """Return the environment of a watcher whose clock is wrong by the size of the fault."""
    file = history.set_clock(f"watcher-{len(history.done)}", fault.size)
    return history.here.env | {"PT_CLOCKS": json.dumps({"prime-train watch": str(file)})}


def _skewed_watcher(history: History, fault: Fault) -> None:
    command = [str(BIN / "prime-train"), "watch", "--interval", "2"]
    watcher = Kept("skewed", command, dict(_skewed(history, fault)), history.here.folder / "skewed.log")
    history.watchers.append(watcher)
    watcher.start()


def _skewed_sweep(history: History, fault: Fault) -> None:
    with (history.here.folder / "skewed-once.log").open("ab") as log:
        command = [str(BIN / "prime-train"), "watch", "--once"]
        subprocess.run(
            command,
            env=_skewed(history, fault),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            timeout=HANG_S,
            check=False,
        )


def _unmount_bucket(history: History, fault: Fault) -> None:
    bucket, away = history.here.home / "bucket", history.here.home / "away"
    bucket.rename(away)
    threading.Event().wait(fault.size)
    # Raises where somebody has made a bucket of its own in place of the one that was mounted there.
    assert not bucket.exists(), (
        f"a new bucket was made where the old one was mounted: {sorted(bucket.rglob('*'))[:5]}"
    )
    away.rename(bucket)


def _roll_back_store(history: History, _: Fault) -> None:
    """Follow the runbook: copy the store in use, let it continue for a while, stop the control plane, restore
    the copy, and serve again.
    """
    store, copy = history.here.home / "control.sqlite", history.here.folder / "copy.sqlite"
    source, target = sqlite3.connect(store), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    draw = random.Random(history.plan.seed)
    threading.Event().wait(draw.uniform(0.5, 4))
    if draw.random() < 0.5:
        _kill_machine(history, Fault(0, Kind.KILL_MACHINE))
        threading.Event().wait(draw.uniform(0, 5))
    with _stopped([*history.here.kept, *history.watchers]):
        for path in history.here.home.glob("control.sqlite*"):
            path.unlink()
        shutil.copy(copy, store)


@contextmanager
def _stopped(kept: list[Kept]) -> Iterator[None]:
    with ExitStack() as record:
        for one in reversed(kept):
            record.enter_context(one.record())
        yield


def _suspend_trainer(history: History, fault: Fault) -> None:
    _frozen(history.process("--save-every"), fault.size)


def _answer_in_place(history: History, fault: Fault) -> None:
    assert history.between is not None
    answer = random.Random(f"{history.plan.seed} {fault.at_s}").choice(ANSWERS)
    history.between.fail(answer, times=10**6)
    threading.Event().wait(fault.size)
    history.between.heal()


def _fill_disk(history: History, fault: Fault) -> None:
    with full(history.here.home):
        threading.Event().wait(fault.size)


def _rot_bit(history: History, fault: Fault) -> None:
    flip_bit(history.here.home / "bucket", random.Random(f"{history.plan.seed} {fault.at_s}"))


def _upgrade(history: History, _: Fault) -> None:
    """Let the control plane begin anew with what a version would have left that had fewer fields."""
    with _stopped([*history.here.kept, *history.watchers]):
        make_older(history.here.home / "control.sqlite")


def _port(here: Plane) -> int:
    command = here.kept[0].command
    return int(command[list(command).index("--port") + 1])


def _exhaust_connections(history: History, fault: Fault) -> None:
    """Open connections that send nothing. Refused or closed ones serve the same purpose."""
    port = _port(history.here)
    with ExitStack() as record:
        for _ in range(CONNECTIONS):
            with suppress(OSError):
                record.enter_context(socket.create_connection(("127.0.0.1", port), timeout=2))
        threading.Event().wait(fault.size)


_STRIKES: Mapping[Kind, _Strike] = {
    Kind.KILL_MACHINE: _kill_machine,
    Kind.KILL_AGENT: _kill("prime_agent"),
    Kind.KILL_TRAINER: _kill("--save-every"),
    Kind.KILL_SERVE: _kill_kept(0),
    Kind.KILL_WATCHER: _kill_kept(1),
    Kind.FREEZE_SERVE: _freeze_serve,
    Kind.FREEZE_AGENT: _freeze_agent,
    Kind.STEP_CLOCK: _step_clock,
    Kind.SKEWED_WATCHER: _skewed_watcher,
    Kind.SKEWED_SWEEP: _skewed_sweep,
    Kind.UNMOUNT_BUCKET: _unmount_bucket,
    Kind.ROLL_BACK_STORE: _roll_back_store,
    Kind.EXHAUST_CONNECTIONS: _exhaust_connections,
    Kind.SUSPEND_SERVE: _freeze_serve,
    Kind.SUSPEND_AGENT: _freeze_agent,
    Kind.SUSPEND_TRAINER: _suspend_trainer,
    Kind.ANSWER_IN_PLACE: _answer_in_place,
    Kind.FILL_DISK: _fill_disk,
    Kind.ROT_BIT: _rot_bit,
    Kind.UPGRADE: _upgrade,
}
