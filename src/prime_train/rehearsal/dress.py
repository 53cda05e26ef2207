"""The dress rehearsal: the written config is run by prime-train itself, on machines of this machine, with a
control plane and a bucket that are there for it alone; the machine is taken away in a save, and another one
has to resume.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.app.embedded import control_plane
from prime_train.app.home import Home
from prime_train.app.interruption import uninterrupted
from prime_train.app.temporary import temporary_home
from prime_train.launch.code.archive import survey
from prime_train.launch.launch import LaunchPlan, launch
from prime_train.launch.launch_config import Checked, launch_checked
from prime_train.launch.stop import stop_if_active
from prime_train.rehearsal.file_watch import FileWatch
from prime_train.rehearsal.recording import FileChange
from prime_train.rehearsal.saves import SavesSeen
from prime_train.rehearsal.seen_saves import begins_save
from prime_train.runs.figures import figures
from prime_train.runs.run import RunState
from prime_train.runs.store import RunRecord
from prime_train.spec.spec import AlertSpec, HardwareSpec, HealthSpec, RunSpec
from prime_train.text.formatting import usd as dollars

INTERVAL_S = 0.5
LOOK_S = 0.1
SETTLE_S_MAX = 120.0
START_S_MAX = 90.0
"""Seconds beside the script's own until a machine trains, on a busy computer."""
HEALTH = HealthSpec(
    heartbeat_s=1,
    overdue_s=5,
    silence_s=10,
    first_heartbeat_s=90,
    first_step_s=900,
    stall_s=120,
    settle_s=10,
    saving_s=120,
    drain_s=20,
)


@dataclass(frozen=True)
class Dressed:
    """How the dress rehearsal went. `taken_in_save`: the machine was taken away while it saved. `durable`:
    the newest step in the bucket by then; `resumed`: the step from which the next machine resumed; `first`:
    its first step. `why`: what was missing; empty if the run went on as it should.
    """

    durable: int = 0
    resumed: int = 0
    first: int = 0
    taken_in_save: bool = False
    seconds: float = 0.0
    why: str = ""
    usd: float | None = None
    """What it has cost, on rented machines."""

    @property
    def is_good(self) -> bool:
        return not self.why


def dressed(
    spec: RunSpec,
    saves: SavesSeen,
    environment: Mapping[str, str],
    *,
    seconds: float,
    say: Callable[[str], None],
) -> Dressed:
    """Run the config, take its machine away in the middle of a save, and tell from where the next one
    resumed. `seconds`: what the script needs at most to its second save.
    """
    began = time.monotonic()
    with temporary_home(environment, name="try", warn=say) as (home, _):
        adapted = _adapted(spec)
        run_id = launch(home, adapted, LaunchPlan(survey(Path(adapted.trainer.code.folder)), "")).run_id
        with control_plane(home, port=0, interval_s=INTERVAL_S):
            found = _Play(home, run_id, saves, say).play(seconds + START_S_MAX)
    return replace(found, seconds=time.monotonic() - began)


def dressed_on_rented(home: Home, what: Checked, *, minutes: float, say: Callable[[str], None]) -> Dressed:
    """Launch the checked config on a rented machine, end the machine once a checkpoint is durable, and tell
    from where the next one resumed. The run is ended in any case. Raises what a launch raises.
    """
    began = time.monotonic()
    run_id = launch_checked(home, what).run_id
    say(f"launched as {run_id}, within {dollars(what.spec.budget.usd)}")
    with _served(home):
        play = _RentedPlay(home, run_id, SavesSeen(), say)
        try:
            found = play.play(60 * minutes)
        finally:
            with uninterrupted():
                stop_if_active(home.store(), run_id, now=True)
                spent = play.settled(SETTLE_S_MAX)
    return replace(found, seconds=time.monotonic() - began, usd=spent)


@contextmanager
def _served(home: Home) -> Iterator[None]:
    """Have the home served during the block: by the control plane that runs, or by one of this process."""
    if home.is_served:
        yield
        return
    with control_plane(home):
        yield


def _adapted(spec: RunSpec) -> RunSpec:
    """Return the run for machines of this machine, with seconds where a real run has minutes, and nothing
    that is told to anybody.
    """
    return spec.model_copy(
        update={
            "health": HEALTH.model_copy(update={"log_rules": spec.health.log_rules}),
            "hardware": HardwareSpec(disk_gib=1, open_files_min=256),
            "environment": {"WANDB_MODE": "offline"} | dict(spec.environment),
            "alerts": AlertSpec(),
            "wandb": None,
            "after": (),
            "verification": (),
            "smoke": None,
        }
    )


class _Play:
    """One run that loses its machine."""

    def __init__(self, home: Home, run_id: str, saves: SavesSeen, say: Callable[[str], None]) -> None:
        self._home, self._run_id, self._saves, self._say = home, run_id, saves, say
        self._save_began = threading.Event()

    def play(self, seconds: float) -> Dressed:
        record, why = self._until(_has_durable, seconds)
        if why:
            return Dressed(why=f"no checkpoint became durable: {why}")
        durable, in_save = self._take(record, seconds)
        record, why = self._until(_goes_on, seconds)
        attempt = record.run.current_attempt
        resumed = attempt.resumed_step if attempt is not None else 0
        first = record.lease.heartbeat.step if record.lease.heartbeat is not None else 0
        if not why and resumed < durable:
            why = f"it resumed from step {resumed}, and step {durable} was durable"
        return Dressed(durable, resumed, first, in_save, why=why)

    def _until(self, reached: Callable[[RunRecord], bool], seconds: float) -> tuple[RunRecord, str]:
        """Wait until the run has got there; return why it has not, if it ended or the time is over."""
        end_s, pause = time.monotonic() + seconds, threading.Event()
        while True:
            record = self._load()
            if reached(record):
                return record, ""
            if record.run.state in (RunState.FAILED, RunState.STOPPED, RunState.CANCELLED):
                return record, f"the run ended: {record.run.why}"
            if record.run.state is RunState.SUCCEEDED:
                return record, "the run was over before"
            if time.monotonic() > end_s:
                return record, f"after {seconds:.0f} s the run is {record.run.state.value}"
            pause.wait(LOOK_S)

    def _take(self, record: RunRecord, seconds: float) -> tuple[int, bool]:
        """Take the machine away at the beginning of its next save; return the newest durable step by then."""
        attempt = record.run.current_attempt
        assert attempt is not None
        assert attempt.pod_id is not None
        pods = self._home.local_pods()
        disk = pods.disk(attempt.pod_id)
        began = time.monotonic()

        def seen(change: FileChange) -> None:
            if begins_save(self._saves, change):
                self._save_began.set()

        watch = None
        if disk is not None:
            watch = FileWatch(disk, seen, lambda path: None, lambda: time.monotonic() - began)
            watch.start()
        in_save = self._save_began.wait(seconds)
        pods.preempt(attempt.pod_id)
        if watch is not None:
            watch.end()
        durable = self._load().lease.committed_step
        self._say(
            f"took its machine away {'in a save' if in_save else 'between two saves'}; step {durable} is durable"
        )
        return durable, in_save

    def _load(self) -> RunRecord:
        record = self._home.store().load(self._run_id)
        assert record is not None
        return record


class _RentedPlay(_Play):
    """One run that loses a rented machine."""

    def _take(self, record: RunRecord, seconds: float) -> tuple[int, bool]:
        """End the machine at its provider, behind the control plane's back."""
        attempt = record.run.current_attempt
        assert attempt is not None
        assert attempt.pod_id is not None
        self._home.pods().terminate(attempt.pod_id)
        durable = self._load().lease.committed_step
        self._say(f"ended its machine {attempt.pod_id}; step {durable} is durable")
        return durable, False

    def settled(self, seconds: float) -> float:
        """Wait until no machine of the run is left, and return the dollars that it has cost."""
        end_s, pause = time.monotonic() + seconds, threading.Event()
        while not (record := self._load()).run.is_settled and time.monotonic() < end_s:
            pause.wait(LOOK_S)
        if not record.run.is_settled:
            self._say(f"a machine of {self._run_id} may still be there; the control plane goes on ending it")
        return figures(record.run, record.lease, self._home.store().now_s()).totals.usd


def _has_durable(record: RunRecord) -> bool:
    return record.run.state is RunState.TRAINING and record.lease.committed_step > 0


def _goes_on(record: RunRecord) -> bool:
    attempt, heartbeat = record.run.current_attempt, record.lease.heartbeat
    return (
        attempt is not None
        and attempt.number > 1
        and record.lease.attempt == attempt.number
        and heartbeat is not None
        and heartbeat.step > attempt.resumed_step
        and record.run.state
        in (RunState.TRAINING, RunState.UPLOADING, RunState.FINISHING, RunState.SUCCEEDED)
    )
