"""One run whose control plane is two functions and whose machines are rented, with parts that are killed."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from prime_train.buckets.port import Bucket
from prime_train.runs.breaker import Watch
from prime_train.runs.run import HistoryEvent, Run
from prime_train.runs.store import Store
from tests.e2e.crash_places import Requested, place_of
from tests.e2e.lambda_functions import Functions, kill, process_at
from tests.e2e.plane import CONFIG, CRASH, await_saved, is_left_alone
from tests.e2e.points import Point
from tests.e2e.strikes import Strikes
from tests.fakes.faulty_proxy import Strike
from tests.fakes.prime import POD_VARIABLE
from tests.lambdas.deployed import output, prime_train
from tests.waiting import await_true

LOOKS_EACH_S = 1.5
"""Seconds between invocations of the watcher, which are more frequent than by its schedule, because a test
cannot wait for minutes.
"""
SSH_BYTES = 9000
"""Number of transferred bytes at which only a part of the agent has arrived."""
LAMBDA_CONFIG = CONFIG.replace(
    "overdue_s: 3, silence_s: 5, first_heartbeat_s: 10", "overdue_s: 5, silence_s: 8, first_heartbeat_s: 60"
)
"""The config, with longer limits because the first response of a function takes a second or two."""


@dataclass
class LambdaPlane:
    """One run on it. `fired`: a file for each point that was reached."""

    functions: Functions
    folder: Path
    points: Sequence[Point]
    killed: dict[str, int] = field(default_factory=lambda: {"Webhook": 0, "Watcher": 0})
    broken: list[str] = field(default_factory=list)

    @property
    def fired(self) -> Path:
        return self.folder / "fired"

    @property
    def store(self) -> Store:
        return self.functions.store

    @property
    def bucket(self) -> Bucket:
        return self.functions.bucket

    @property
    def started(self) -> str:
        """Return how often the functions' processes were started for this run."""
        return "+".join(str(1 + times) for times in self.killed.values())

    def launch(self, config: Path) -> str:
        return output(self.functions.here.operator, "run", str(config)).split()[0]

    def run(self, run_id: str) -> Run:
        record = self.store.load(run_id)
        assert record is not None
        return record.run

    def history(self, run_id: str) -> list[HistoryEvent]:
        return list(self.store.history(run_id))

    def await_end(self, run_id: str) -> Run:
        """Wait until the run is over, every attempt settled, every machine gone, and nothing is left to
        do.
        """
        await_true(f"{run_id} is over", lambda: self._is_over(run_id), every_s=LOOKS_EACH_S)
        assert not self.broken, self.broken
        return self.run(run_id)

    def _is_over(self, run_id: str) -> bool:
        killed = sum(self.killed.values())
        failure = self.functions.look()
        assert not failure or sum(self.killed.values()) > killed, f"the watcher failed: {failure}"
        run = self.run(run_id)
        return is_left_alone(run, self.store.now_s()) and not self.functions.here.fake.alive

    def evidence(self) -> str:
        here = self.functions.here
        logs = [
            path for disk in (here.code.parent / "prime").glob("pods/*/disk") for path in disk.rglob("*.log")
        ]
        parts = [f"== {path}\n{path.read_text(errors='replace')[-1500:]}" for path in logs]
        for run in self.store.list_runs()[:1]:
            lines = [f"  {h.at_s} e{h.attempt} {h.kind}: {h.text}" for h in self.history(run.run_id)]
            parts += [f"{run.run_id} {run.state} {run.why}", *lines]
        return "\n".join([*parts, here.logs()[-4000:]])

    # --------------------------------------------------------------------------------------------------------
    # what is taken away

    def struck(self, name: str) -> None:
        await_saved(self.store, name)
        self.arm(name)

    def arm(self, needs: str) -> None:
        """Make points at a gate effective from now on."""
        for point in self.points:
            at = place_of(point)
            if at is not None and point.needs == needs:
                arm = self._arm_after if at.after else self._arm
                arm(point, at)

    def _arm_after(self, point: Point, at: Requested) -> None:
        def follows(port: int) -> bool:
            self._arm(point, at)
            return False

        self.functions.gates["machines"].fail(Strike(follows), path=at.after)

    def _arm(self, point: Point, at: Requested) -> None:
        def strike(port: int) -> bool:
            try:
                return self._strike(point, port)
            except (AssertionError, KeyError, psutil.Error) as error:
                self.broken.append(f"{point.name}: {error!r}")
                return False

        if at.gate == "ssh":
            self.functions.here.fake.cut_ssh(after_bytes=SSH_BYTES, then=strike)
        else:
            self.functions.gates[at.gate].fail(
                Strike(strike, at.done), method=at.method, path=at.path, first=point.nth
            )

    def _strike(self, point: Point, port: int) -> bool:
        """Strike, and return whether the sender of the request is gone."""
        asks = process_at(port)
        (self.fired / point.name).touch()
        match point.victim:
            case "machine":
                self.take_machine(asks.environ()[POD_VARIABLE])
            case "agent":
                kill(asks)
            case _ if point.role == "agent":
                self.kill("Webhook")
                return False
            case _:
                output = "Webhook" if point.role == "webhook" else "Watcher"
                assert asks == self.functions.worker(output)
                self.kill(output)
        return True

    def take_machine(self, pod: str) -> None:
        self.functions.here.fake.preempt(pod)

    def kill(self, output: str) -> None:
        """Kill the function's process, wherever it is in its work."""
        self.killed[output] += 1
        kill(self.functions.worker(output))
        if output == "Watcher":
            self.functions.lose_disk()


@contextmanager
def lambda_plane(on: Functions, folder: Path, points: Sequence[Point]) -> Iterator[LambdaPlane]:
    """Yield the control plane; nothing of the run is left at the end, whatever its result."""
    here = LambdaPlane(on, folder, points)
    here.fired.mkdir(parents=True)
    takes = {
        "machine": here.take_machine,
        "plane": lambda _: here.kill("Webhook"),
        "watcher": lambda _: here.kill("Watcher"),
    }
    with Strikes(takes, here.struck) as strikes:
        _forget_earlier_runs(on.store)
        on.bring(_image([point.row(here.fired, strikes.port) for point in points if place_of(point) is None]))
        here.arm("")
        try:
            yield here
        finally:
            for gate in on.gates.values():
                gate.forget()
            _end_all(on)


def _forget_earlier_runs(store: Store) -> None:
    """Make earlier runs unknown to the breakers: a machine of another case that fell silent minutes ago would
    form a cohort with one of this case, which is then left alone for long.
    """

    def forget() -> bool:
        known = store.watch()
        return store.save_watch(
            Watch(known.version + 1, accounts=known.accounts, buckets=known.buckets), version=known.version
        )

    await_true("nothing that fell silent is remembered", forget)


def _end_all(on: Functions) -> None:
    """End everything. For a run that succeeded there is nothing to end."""
    left = [run.run_id for run in on.store.list_runs() if not run.is_over]
    for run_id in left:
        prime_train(on.here.operator, "stop", run_id, "--now")
    if left:
        await_true(
            "what was left is over",
            lambda: not on.look() and all(run.is_over for run in on.store.list_runs()),
        )
    for pod in on.here.fake.alive:
        on.here.fake.preempt(pod.pod_id)


def _image(rows: Sequence[Mapping[str, object]]) -> str:
    """Return a machine's Python that strikes itself: it loads these files even in isolated mode."""
    settings = {"PYTHONPATH": str(CRASH), "PT_CRASH": json.dumps(rows)}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())
    return f'#!/bin/sh\n{exports}[ "$1" != -I ] || shift\nexec {shlex.quote(sys.executable)} "$@"\n'
