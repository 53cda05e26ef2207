"""The logs that the parts of a trainer write beside its own output, such as that of its inference server."""

from collections.abc import Callable

from prime_train.advice import Advice, Call, Operation
from prime_train.app.machines import Machines
from prime_train.errors import UsageError
from prime_train.outputs.logs.log_tail import TAIL_BYTES_MAX, Tail, last_lines
from prime_train.outputs.logs.logs import LogEnd
from prime_train.runs.run import Run
from prime_train.runs.store import RunRecord
from prime_train.text.formatting import alternatives
from prime_train.trainers.areal import conventions as areal
from prime_train.trainers.prime_rl.conventions import KIND, log_folder, server_log, shares_gpu

COMPONENTS = {KIND: ("inference", "orchestrator", "trainer"), "areal": ("rollout", "actor", "ref", "critic")}
"""The parts of trainers that write a log of their own, by kind: those of prime-rl and of AReaL as of August
2026.
"""


def component_log(
    machines: Machines, record: RunRecord, component: str, lines: int, warn: Callable[[str], None]
) -> LogEnd:
    """Return the last lines of the log of a part of the run's trainer, from the machine that the run has now:
    these logs are not kept in the bucket. `warn` is called with the reason if the machine cannot be reached.

    Raises UsageError if the run's kind of trainer has no such part, or no machine has its log now, and
    TemporaryError if the connection is lost.
    """
    run = record.run
    path = f"work/{_path(run, component)}"
    disk = machines.disk(run)
    if disk is not None and (disk / path).is_file():
        return LogEnd(str(disk / path), Tail(disk / path).last(lines), Tail(None))
    unknown = machines.why_unknown(run)
    if unknown:
        warn(unknown)
    elif disk is None:
        with machines.reached(run) as machine:
            data = machine.end_of(path, bytes_max=TAIL_BYTES_MAX) if machine is not None else b""
        if data:
            return LogEnd(
                f"{path.removeprefix('work/')} of attempt {run.attempt}",
                last_lines(data.decode(errors="replace"), lines),
                Tail(None),
            )
    message = f"no machine of {run.run_id} has a log of {component} now"
    raise UsageError(
        message, fix=Advice("look at the trainer's own output: ", Call(Operation.LOGS, run.run_id))
    )


def _path(run: Run, component: str) -> str:
    spec, known = run.spec, COMPONENTS.get(run.spec.trainer.kind, ())
    if component not in known:
        which = (
            f"one of {alternatives(known)}" if known else "none: all its parts write to the trainer's own log"
        )
        raise UsageError(
            f"kind {spec.trainer.kind} has no component {component[:60]!r}", fix=f"it has {which}"
        )
    if spec.trainer.prime_rl is not None:
        is_beside = component == "inference" and shares_gpu(spec.hardware)
        return (
            server_log(spec.trainer.prime_rl)
            if is_beside
            else f"{log_folder(spec.trainer.prime_rl)}/{component}.log"
        )
    return (
        f"{spec.checkpoints.folder}/{areal.ROOT}/logs/{areal.USER}/{spec.name}/{areal.TRIAL}/{component}.log"
    )
