"""Evidence for people about why training hangs or has failed: the current logs, processes, stacks, GPUs and
disks.

Every part is bounded in time and size; the file of a part that cannot be obtained contains the reason.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import psutil

from prime_agent.gpu.reading import GpuReader
from prime_agent.gpu.report import table
from prime_agent.processes import MARK
from prime_agent.trainer.environment import without_secrets
from prime_train.buckets.keys import AFTER_STREAM, METRICS_EVIDENCE, evidence_key
from prime_train.buckets.port import Bucket
from prime_train.runs.wire import Phase

LOG_BYTES_MAX = 2**20
PART_CHARS_MAX = 2**20
PROCESSES_MAX = 2000
STACKS_MAX = 16
COMMAND_S_MAX = 20
STACK_S_MAX = 15
GPUS_S_MAX = 3.0
KILLED_S_MAX = 2

LOGS: dict[Phase, str] = {
    Phase.SETUP: "setup.log",
    Phase.SMOKE: "smoke.log",
    Phase.TRAIN: "trainer.log",
    Phase.AFTER: AFTER_STREAM,
}
"""File names of the logs, by phase; all other phases write to agent.log."""
ENVIRONMENT = "environment.txt"
"""File name of the description of the commands' environment, which is also kept if a phase that runs commands
has failed.
"""


class Evidence:
    """Collector of one attempt's evidence.

    In everything uploaded, `secrets` and whatever looks like one are redacted. `own_logs` are the files that
    the trainer writes itself, keyed by the name under which they are kept. `metrics` returns the end of the
    trainer's metrics file, "" if there is none. `stall` returns the known reasons why no step is made.
    `environment` describes that of commands, without values.
    """

    def __init__(
        self,
        bucket: Bucket,
        run_id: str,
        attempt: int,
        *,
        logs: Path,
        own_logs: Mapping[str, Path],
        metrics: Callable[[], str],
        disk: Path,
        gpus: GpuReader,
        secrets: Mapping[str, str],
        owner: str,
        stall: Callable[[], str],
        environment: Callable[[], str],
    ) -> None:
        self._bucket, self._run_id, self._attempt = bucket, run_id, attempt
        self._logs, self._own_logs, self._disk, self._gpus = logs, own_logs, disk, gpus
        self._secrets, self._metrics = secrets, metrics
        self._owner = owner
        self._stall, self._environment = stall, environment

    def gather(self) -> None:
        """Upload all evidence. Raises the bucket's errors."""
        for path in sorted(self._logs.glob("*.log")):
            self._put(path.name, tail(path))
        self._keep_own_logs()
        parts: dict[str, Callable[[], str]] = {
            "stall.txt": self._stall,
            "processes.txt": self._processes,
            "stacks.txt": self._stacks,
            "gpu.txt": self._gpu,
            "disk.txt": self._disks,
            ENVIRONMENT: self._environment,
        }
        for name, part in parts.items():
            self._put(name, _text_or_error(part))

    def keep_log(self, phase: Phase) -> None:
        """Upload the log of the failed phase if it exists, and for training also the trainer's own logs."""
        path = self._logs / LOGS.get(phase, "agent.log")
        if path.exists():
            self._put(path.name, tail(path))
        if phase in LOGS:
            self._put(ENVIRONMENT, _text_or_error(self._environment))
        if phase is Phase.TRAIN:
            self._keep_own_logs()

    def _keep_own_logs(self) -> None:
        for name, path in self._own_logs.items():
            if path.exists():
                self._put(name, _text_or_error(partial(tail, path)))
        metrics = _text_or_error(self._metrics)
        if metrics:
            self._put(METRICS_EVIDENCE, metrics)

    def _put(self, name: str, text: str) -> None:
        data = without_secrets(text, self._secrets)[-PART_CHARS_MAX:].encode(errors="replace")
        self._bucket.put(evidence_key(self._run_id, self._attempt, name), data)

    def _processes(self) -> str:
        rows = ["pid ppid status cpu_s rss_mib threads command"]
        for count, process in enumerate(psutil.process_iter()):
            if count >= PROCESSES_MAX:
                break
            rows += _row(process)
        return "\n".join(rows)

    def _stacks(self) -> str:
        if shutil.which("py-spy") is None:
            return (
                "py-spy is not on PATH: add `pip install py-spy` to the spec's setup to get Python stacks "
                "here.\n\n" + self._kernel()
            )
        dumps = [
            f"== {pid}\n{_run(['py-spy', 'dump', '--nonblocking', '--pid', str(pid)], STACK_S_MAX)}"
            for pid in self._children()
        ]
        return "\n\n".join(dumps[:STACKS_MAX])

    def _kernel(self) -> str:
        """Return where in the kernel each of the trainer's processes waits, on Linux."""
        rows = []
        for pid in self._children():
            for name in ("wchan", "syscall", "stack"):
                path = Path(f"/proc/{pid}/{name}")
                rows.append(f"{pid} {name}: {_text_or_error(path.read_text).strip()}")
        return "\n".join(rows)

    def _children(self) -> list[int]:
        return list(_of_owner(self._owner))[:STACKS_MAX]

    def _gpu(self) -> str:
        text = table(self._gpus.look(GPUS_S_MAX))
        return (
            text if shutil.which("nvidia-smi") is None else f"{text}\n\n{_run(['nvidia-smi'], COMMAND_S_MAX)}"
        )

    def _disks(self) -> str:
        usage = shutil.disk_usage(self._disk)
        text = f"{self._disk}: {usage.free / 2**30:.2f} GiB free of {usage.total / 2**30:.2f}"
        return "\n\n".join([text, _run(["df", "-k"], COMMAND_S_MAX), _run(["df", "-i"], COMMAND_S_MAX)])


def tail(path: Path) -> str:
    """Return the end of a log, at most `LOG_BYTES_MAX` bytes. Raises OSError.

    A line whose beginning would be cut off is left out completely, because the rest of a secret that was cut
    could not be recognised.
    """
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - LOG_BYTES_MAX)
        file.seek(begin)
        data = file.read(LOG_BYTES_MAX)
        return (data.partition(b"\n")[2] if begin else data).decode(errors="replace")


def _row(process: psutil.Process) -> list[str]:
    try:
        with process.oneshot():
            cpu = process.cpu_times()
            fields = (
                process.pid,
                process.ppid(),
                process.status(),
                f"{cpu.user + cpu.system:.1f}",
                process.memory_info().rss >> 20,
            )
            return [
                " ".join(
                    map(
                        str,
                        (*fields, process.num_threads(), " ".join(process.cmdline())[:500] or process.name()),
                    )
                )
            ]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def _of_owner(owner: str) -> Iterator[int]:
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK, "").startswith(f"{owner}/"):
                yield process.pid
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _text_or_error(part: Callable[[], str]) -> str:
    try:
        return part()
    except OSError as error:
        return f"could not be read: {error}"


def _run(command: list[str], timeout_s: int) -> str:
    """Return the command's output, both streams."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        return f"{command[0]} failed: {error}"
    for limit_s in (timeout_s, KILLED_S_MAX):
        try:
            return process.communicate(timeout=limit_s)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
    # A process that waits in the kernel for a driver does not end even on SIGKILL.
    return f"{command[0]} did not end within {timeout_s} s and could not be killed"
