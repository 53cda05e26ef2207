"""Checks that need what the setup has made: the data for training, a short test run, an all-reduce over the
machine's GPUs, and that an inference server can start.

The programs of the last two run in the trainer's Python, each as a command of its own with a time limit, and
nothing is concluded from a program that cannot be run: which Python a command uses is not known in general.
"""

import errno
import json
import shlex
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from prime_agent.before_training import all_reduce_program
from prime_agent.before_training.phase import Ended, PhaseError, Shell
from prime_agent.trainer.progress_follower import Follower
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec, SmokeSpec, VerifySpec
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.services import ServiceSurroundings

PYTHONS = (".venv/bin/python", "python3", "python")
"""Pythons that commands of the working tree probably use, in this order."""
SPARE_S = 60.0
"""Seconds beyond the program's own limits, after which it is ended from outside."""
ENGINE_S_MAX = 300.0
"""Seconds for importing the inference engine, which takes half a minute on a machine with cold disks."""
_ENGINE = "inference engine:"
_NO_PYTHON = 127
_IMPORT_ENGINE = f"""
import sys
sys.path[:] = [path for path in sys.path if path]
from importlib.metadata import PackageNotFoundError, version
try:
    name = version("vllm")
except PackageNotFoundError:
    print("{_ENGINE}", "none")
    sys.exit()
print("{_ENGINE}", name, flush=True)
import vllm
from vllm.platforms import current_platform
print("{_ENGINE}", name, "on", current_platform.device_type)
"""


def by_python(pythons: Sequence[str], words: Sequence[str]) -> str:
    """Return a command that runs the first of the Pythons that is there with these arguments."""
    names = " ".join(map(shlex.quote, pythons))
    return (
        f'for python in {names}; do\ncommand -v "$python" >/dev/null && exec '
        '"$python" '
        f"{shlex.join(words)}\ndone\nexit {_NO_PYTHON}"
    )


def pythons_of(spec: RunSpec) -> tuple[str, ...]:
    """Return the Pythons that the trainer may use: its own if its kind has one."""
    own = trainer_for(spec).python(spec)
    return (own,) if own else PYTHONS


def check_all_reduce(
    spec: RunSpec,
    shell: Shell,
    *,
    start_s: float = all_reduce_program.START_S_MAX,
    limit_s: float = all_reduce_program.LIMIT_S,
) -> str:
    """Add up a tensor over the GPUs of the machine, and return how that went, or why it was not tried.

    Raises PhaseError if they cannot, Called if the phase is cancelled, and OSError if no process can be
    started.
    """
    mark, said = all_reduce_program.MARK, list[dict[str, str]]()

    def read(lines: list[str]) -> None:
        said.extend(json.loads(line.removeprefix(mark)) for line in lines if line.startswith(f"{mark} {{"))

    count = spec.hardware.count
    command = by_python(
        pythons_of(spec), [all_reduce_program.__file__, str(count), str(start_s), str(limit_s)]
    )
    ended = shell.run(command, name="all-reduce", timeout_s=start_s + limit_s + SPARE_S, on_lines=read)
    if not said:
        why = (
            "there is no Python" if ended.code == _NO_PYTHON else f"the program ended with code {ended.code}"
        )
        return f"no all-reduce was tried: {why}"
    state, text = said[-1]["state"], said[-1]["text"]
    if state == "fault":
        raise PhaseError(Cause.ALL_REDUCE_FAILED, f"all-reduce by {text}", log_tail=ended.tail)
    return f"all-reduce by {text}" if state == "ok" else f"no all-reduce was tried: {text}"


def check_services(spec: RunSpec, shell: Shell) -> str:
    """Check that the services beside the trainer, such as an inference server, can start: that nobody else
    listens on their ports, and that their engine can be loaded. Return what was found; "" if the run has
    none.

    Raises PhaseError if one cannot start, Called if the phase is cancelled, and OSError if no process can be
    started.
    """
    try:
        services = trainer_for(spec).services(spec, ServiceSurroundings(_reader(shell.cwd), shell.env))
    except (OSError, ValueError) as error:
        return f"the trainer's services are not known: {error}"
    for service in services:
        for port in service.ports:
            if in_use(port):
                what = f"port {port}, on which {service.name} is to listen, is in use on this machine"
                raise PhaseError(Cause.PORT_IN_USE, what)
    return _check_engine(spec, shell) if services else ""


def in_use(port: int) -> bool:
    """Return whether some process listens on the port of this machine."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
            listener.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _check_engine(spec: RunSpec, shell: Shell) -> str:
    said: list[str] = []

    def read(lines: list[str]) -> None:
        said.extend(line.removeprefix(_ENGINE).strip() for line in lines if line.startswith(_ENGINE))

    command = by_python(pythons_of(spec), ["-c", _IMPORT_ENGINE])
    ended = shell.run(command, name="inference-engine", timeout_s=ENGINE_S_MAX, on_lines=read)
    if not said or said == ["none"]:
        return "the inference engine was not tried: there is no vllm where it was looked for"
    if ended.timed_out:
        raise PhaseError(
            Cause.INFERENCE_FAILED,
            f"vllm {said[0]} was not loaded within {ENGINE_S_MAX:.0f} s",
            log_tail=ended.tail,
        )
    if ended.code != 0:
        last = ended.tail.strip().rpartition("\n")[2]
        raise PhaseError(
            Cause.INFERENCE_FAILED, f"vllm {said[0]} cannot be loaded: {last[:300]}", log_tail=ended.tail
        )
    return f"the inference engine loads: vllm {said[-1]}"


def _reader(tree: Path) -> Callable[[str], str]:
    return lambda path: (tree / path).read_text(encoding="utf-8")


def smoke(spec: RunSpec, test: SmokeSpec, shell: Shell) -> None:
    """Run the smoke test. Raises PhaseError if it fails, takes too long or does not reach its step, and
    Called if it is cancelled."""
    reached = _Reached(spec)
    file = spec.trainer.progress.file
    if file is None:
        ended = shell.run(test.command, name="smoke", timeout_s=test.timeout_s, on_lines=reached.read)
    else:
        follower = Follower(shell.cwd / file)
        reached.ignore(follower.skip_present())
        ended = shell.run(test.command, name="smoke", timeout_s=test.timeout_s)
        reached.read([*follower.read_new(), *follower.rest()])
    wrong = _wrong(test, ended, reached.step)
    if wrong is not None:
        raise PhaseError(Cause.SMOKE_FAILED, f"`{test.command}` {wrong}", log_tail=ended.tail)


class _Reached:
    """The highest step so far, parsed like the trainer's progress."""

    def __init__(self, spec: RunSpec) -> None:
        self.step = 0
        self._reader = trainer_for(spec).reader(spec)

    def read(self, lines: list[str]) -> None:
        for line in lines:
            seen = self._reader.read(line)
            self.step = max(self.step, seen.step if seen is not None else 0)

    def ignore(self, lines: list[str]) -> None:
        """Read lines that were written before the test; only a header among them counts."""
        for line in lines:
            self._reader.read(line)


def _wrong(test: SmokeSpec, ended: Ended, step: int) -> str | None:
    if ended.timed_out:
        return f"did not end within {test.timeout_s} s"
    if ended.code != 0:
        return f"ended with code {ended.code}"
    if test.steps is not None and step < test.steps:
        return f"reached step {step} of {test.steps}"
    return None


MATCHES_MAX = 100_000
SHOWN_MAX = 5


def verify(rows: Sequence[VerifySpec], work: Path) -> None:
    """Check that the data for training exists: dataset builders are known to exit successfully with half of
    their output missing. Raises PhaseError that names every row that does not hold, with the files found."""
    wrong = [problem for row in rows if (problem := problem_of(row, work)) is not None]
    if wrong:
        raise PhaseError(Cause.VERIFY_FAILED, "; ".join(wrong))


def problem_of(row: VerifySpec, work: Path) -> str | None:
    """Return what is wrong with the files of one row, or None."""
    files = sorted(path for path in islice(work.glob(row.path), MATCHES_MAX) if path.is_file())
    small = [path for path in files if path.stat().st_size < row.size_min]
    wanted = f"exactly {row.exactly}" if row.exactly is not None else f"at least {row.at_least}"
    enough = len(files) == row.exactly if row.exactly is not None else len(files) >= row.at_least
    if enough and not small:
        return None
    sized = f" of at least {size_text(row.size_min)}" if row.size_min else ""
    seen = ", ".join(
        _shown(path, work, row.size_min)
        for path in [*small, *(f for f in files if f not in small)][:SHOWN_MAX]
    )
    more = f" and {len(files) - SHOWN_MAX} more" if len(files) > SHOWN_MAX else ""
    return f"{row.path}: {wanted}{sized} required, {len(files)} found{': ' if seen else ''}{seen}{more}"


def size_text(size: int) -> str:
    """Return a size in bytes as text, in the largest unit in which it is at least 1."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _shown(path: Path, work: Path, size_min: int) -> str:
    size = path.stat().st_size
    return f"{path.relative_to(work)} ({size_text(size)}{', too small' if size < size_min else ''})"
