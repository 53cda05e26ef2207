"""On the machine of an exported task: launch the run that continues what earlier machines of the task left in
the bucket.
"""

import gzip
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from prime_train.app.home import Home
from prime_train.buckets.keys import is_run_id, task_done_key, task_prefix, task_run_key
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.lookup import look
from prime_train.checkpoints.unpacking import unpack_stream
from prime_train.configs import policy_place
from prime_train.environment import HOME, PROVIDER
from prime_train.errors import UsageError
from prime_train.interop.export.machine_files import CODE, CONFIG, PRICE
from prime_train.interop.export.used import NOTE_S_MAX, Notes, setup_of, used_before
from prime_train.launch.launch import launch_as, new_id, plan
from prime_train.launch.start import Start, check_start, start_of
from prime_train.providers.kinds import LOCAL
from prime_train.providers.local.provider import WHOLE_MACHINE
from prime_train.runs import ledger
from prime_train.runs.budget import limit_reason, used_up
from prime_train.runs.run import Run, Totals
from prime_train.spec.access_run_secrets import VARIABLE
from prime_train.spec.spec import RunSpec

MARGIN_BYTES = 2**30
"""Bytes that unpacking the code leaves free on the disk."""
TRIES_MAX = 20
PLACE = "PATH"
OFFERS = "offers.json"


@dataclass(frozen=True)
class TaskMachine:
    """The machine of a task. `files`: the folder with what the task brought; `disk`: the folder to work in.
    `usd_per_hour`: the highest price that it may have; 0 if none is known.
    """

    files: Path
    disk: Path
    task: str
    spec: RunSpec
    home: Home
    usd_per_hour: float = 0.0


@dataclass(frozen=True)
class Over:
    """A task for which nothing is left to do, and why."""

    why: str
    is_success: bool


@dataclass(frozen=True)
class Launched:
    """A run on this machine, and the notes of what it uses."""

    run: Run
    notes: Notes


def machine_of(files: Path, disk: Path, environment: Mapping[str, str]) -> TaskMachine:
    """Return the machine, with its code unpacked. Raises UsageError if the files are not those of a task."""
    try:
        content = json.loads((files / CONFIG).read_bytes())
        task, spec = str(content["task"]), RunSpec.model_validate_json(json.dumps(content["config"]))
        usd_per_hour = float(content.get(PRICE) or 0.0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{files} does not contain an exported task: {error}") from error
    code = disk / "code"
    if not spec.trainer.code.repo:
        _unpack(files, code)
        spec = _changed(spec, "trainer", code=spec.trainer.code.model_copy(update={"folder": str(code)}))
    # The trainer's python is that of the image, and not the one that prime-train was installed with.
    spec = spec.model_copy(
        update={"environment": {PLACE: environment.get(PLACE, os.defpath), **spec.environment}}
    )
    own = {**environment, HOME: str(disk / "home"), VARIABLE: ",".join(spec.secrets)}
    # Whoever started the task has chosen this machine for it, whatever else its environment could rent.
    own |= {PROVIDER: LOCAL, WHOLE_MACHINE: "1", policy_place.VARIABLE: ""}
    return TaskMachine(
        files, disk, task, spec, Home.of({name: value for name, value in own.items() if value}), usd_per_hour
    )


def launched(machine: TaskMachine, setup_s: float) -> Launched | Over:
    """Launch a run from the newest checkpoint of the task, with what is left of its budget. `setup_s`: for
    how long this machine has been used already.
    """
    home, bucket = machine.home, _bucket(machine.home)
    before = used_before(bucket, machine.task)
    over = _over(machine, bucket, before)
    if over is not None:
        return over
    # End what runs here for an earlier start of the task on this machine.
    pods = home.local_pods()
    for pod in pods.list():
        pods.terminate(pod.pod_id)
    _write_offer(machine)
    setup = setup_of(setup_s, machine.usd_per_hour)
    for _ in range(TRIES_MAX):
        earlier = dict(_earlier(bucket, machine.task))
        run_id, number = new_id(machine.spec.name), max(earlier, default=0) + 1
        # Of two machines that start at once, each gets a number, and so a run, of its own.
        if bucket.put_if(task_run_key(machine.task, number), run_id.encode(), tag=None):
            notes = Notes(
                bucket, machine.task, number, ledger.add((before, setup)), setup, machine.usd_per_hour
            )
            notes.begin(NOTE_S_MAX)
            start = _newest(home, machine.spec, list(earlier.values()))
            run = launch_as(
                home, run_id, machine.spec, plan(machine.spec, allowed=None), start=start, used=notes.earlier
            )
            if run is not None:
                return Launched(run, notes)
    raise UsageError(f"no run could be launched for {machine.task}: other machines of it start all the time")


def _over(machine: TaskMachine, bucket: Bucket, before: Totals) -> Over | None:
    if bucket.get(task_done_key(machine.task)) is not None:
        return Over(f"{machine.task} has succeeded before; nothing is left to do", is_success=True)
    now_s = machine.home.store().now_s()
    run = Run(machine.task, machine.spec, created_s=now_s, folded=before)
    limits = used_up(run, now_s)
    if not limits:
        return None
    return Over(
        f"{machine.task} is not continued: {limit_reason(run, limits[0])}, by all of its machines together",
        is_success=False,
    )


def mark_done(machine: TaskMachine, run_id: str) -> None:
    """Note that the task has succeeded, so that no later machine of it trains."""
    _bucket(machine.home).put(task_done_key(machine.task), run_id.encode())


def _bucket(home: Home) -> Bucket:
    home.make_bucket()
    return home.bucket()


def _earlier(bucket: Bucket, task: str) -> Iterator[tuple[int, str]]:
    """Yield the numbers and ids of the task's runs, oldest first."""
    prefix = task_prefix(task)
    for stat in bucket.list(prefix):
        content = bucket.get(stat.key) if stat.key.removeprefix(prefix).isdigit() else None
        if content is not None and is_run_id(name := content.data.decode(errors="replace")):
            yield int(stat.key.removeprefix(prefix)), name


def _newest(home: Home, spec: RunSpec, run_ids: list[str]) -> Start | None:
    """Return the newest complete checkpoint of these runs from which there is something left to train; None
    if there is none.
    """
    last = spec.trainer.steps
    found = []
    for run_id in run_ids:
        with suppress(UsageError):  # a run of which nothing is in the bucket
            found += [
                (one.step, run_id)
                for one in look(home.stored_runs(), run_id).catalog.complete()
                if last is None or one.step < last
            ]
    for step, run_id in sorted(found, reverse=True):
        start = start_of(home, f"{run_id}@{step}")
        check_start(start, spec)
        return start
    return None


def _write_offer(machine: TaskMachine) -> None:
    """Describe this machine to the provider `local`, which otherwise has no GPUs."""
    hardware = machine.spec.hardware
    gpu = {"gpu": hardware.gpus[0], "gpu_count": hardware.count} if hardware.gpus else {}
    folder = machine.home.root / "pods"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OFFERS).write_text(
        json.dumps({"this-machine": {"usd_per_hour": machine.usd_per_hour, "spot": True, **gpu}})
    )


def _unpack(files: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    whole = folder.with_name(CODE)
    with whole.open("wb") as target:
        for part in sorted(files.glob(f"{CODE}.*")):
            target.write(part.read_bytes())
    with gzip.open(whole) as source:
        unpack_stream(cast(IO[bytes], source), folder, margin_bytes=MARGIN_BYTES, is_own=True)
    whole.unlink()


def _changed(spec: RunSpec, section: str, **values: object) -> RunSpec:
    return spec.model_copy(update={section: getattr(spec, section).model_copy(update=values)})
