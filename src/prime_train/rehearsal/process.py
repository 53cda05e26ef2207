"""Starts a command in a copy of the working tree, as a machine would, and records what it does."""

import os
import signal
import stat
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from prime_train import bubblewrap
from prime_train.providers.local.processes import own_environment
from prime_train.providers.local.walls import Walls
from prime_train.rehearsal.file_watch import FileWatch
from prime_train.rehearsal.recording import FileChange, OutputLine, Recording
from prime_train.spec.spec import RunSpec
from prime_train.text.redaction import redacted
from prime_train.text.shell import replacing_the_shell
from prime_train.trainers.of_spec import trainer_for

LINES_MAX = 100_000
LINE_CHARS_MAX = 4_096
LOOK_S = 0.25
TEXT_FILE_BYTES_MAX = 16 * 2**20
END_S_MAX = 10.0
READ_BYTES = 64 * 1024


@dataclass(frozen=True)
class Place:
    """Where a command is started. `tree`: its working tree; `home`: its home folder; both are new and its
    own. `private`: the folder of the rehearsal, which the command does not see. `original`: the working tree
    that it is a copy of, in whose place the command sees the copy.
    """

    tree: Path
    home: Path
    private: Path
    original: Path | None = None


def environment_of(own: Mapping[str, str], place: Place, spec: RunSpec) -> dict[str, str]:
    """Return the variables of the command: those of a machine of this machine, what the run names, and no
    tracker that writes to an account. `own`: this process's variables.
    """
    return {
        **own_environment(place.home),
        **{name: own[name] for name in spec.secrets if name in own},
        **trainer_for(spec).environment(spec, attempt=1, run_id="rehearsal"),
        "WANDB_MODE": "offline",
    }


def why_not_walled(private: Path) -> str:
    """Return why commands are not kept inside their copy here; empty if they are."""
    return Walls(private, "", is_read_only=True).why_none


def _walls(place: Place) -> list[str]:
    """Return the words before a command that keep it inside its place: it can change nothing else."""
    words = Walls(place.private, "", is_read_only=True).around(place.tree, place.home)
    if not words or place.original is None or place.tree.is_relative_to(place.original.resolve()):
        return words
    # A path that is written out in a script leads into the copy, too.
    return [*words[:-1], "--bind", str(place.tree), str(place.original), "--"]


MARK = "PRIME_TRAIN_REHEARSAL"
"""The variable by which processes are found that have left the group of their command."""


class Rehearsed:
    """A running command and its recording. `wake` is set at everything that is seen."""

    def __init__(self, command: str, place: Place, environment: Mapping[str, str]) -> None:
        self.command, self.place = command, place
        self.recording = Recording()
        self.wake = threading.Event()
        self._mark = uuid.uuid4().hex
        self._environment = {**environment, MARK: self._mark}
        self.began = time.monotonic()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._texts: dict[str, _TextFile] = {}
        self._on_change: Callable[[FileChange], None] | None = None
        self._watch = FileWatch(place.tree, self._file_changed, self._text_grew, self.now_s)

    def now_s(self) -> float:
        return time.monotonic() - self.began

    def on_change(self, call: Callable[[FileChange], None] | None) -> None:
        """Have each further change told to `call`, in the thread that watches the files."""
        self._on_change = call

    def start(self) -> None:
        """Start the command. Raises OSError."""
        walls = _walls(self.place)
        self._watch.start()
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [*walls, "/bin/sh", "-c", replacing_the_shell(self.command)],
            cwd=self.place.tree,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for stream, name in ((self._process.stdout, "stdout"), (self._process.stderr, "stderr")):
            self._run(self._read, stream, name)
        self._run(self._wait)
        self._run(self._measure)

    @property
    def is_running(self) -> bool:
        return self.recording.ended_s is None

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        end_s = time.monotonic() + seconds
        while self.is_running and time.monotonic() < end_s:
            self.wake.wait(min(0.2, max(0.01, end_s - time.monotonic())))
            self.wake.clear()
        return not self.is_running

    def ask(self) -> None:
        """Ask the trainer to end, as a notice of preemption does: SIGTERM to each of its processes."""
        self.recording.asked_s = self.now_s()
        for process in self._processes():
            with suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill all of the command's processes at once."""
        if self.is_running and self.recording.killed_s is None:
            self.recording.killed_s = self.now_s()
        for process in self._processes():
            with suppress(psutil.Error):
                process.kill()
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill what is left, and end the recording."""
        if self._process is None:
            return
        self.kill()
        self._kill_marked()
        self.wait(END_S_MAX)
        self._watch.end()
        for thread in self._threads:
            thread.join(END_S_MAX)
        for stream in (self._process.stdout, self._process.stderr):
            # What has left the group of processes may still have it open, and be read from.
            if stream is not None and not any(thread.is_alive() for thread in self._threads):
                stream.close()

    def _kill_marked(self) -> None:
        """Kill what has made itself independent of the command, where no walls end it."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and process.environ().get(MARK) == self._mark:
                    process.kill()

    def _processes(self) -> list[psutil.Process]:
        """Return the trainer's processes, without those that are only walls around them."""
        if self._process is None:
            return []
        with suppress(psutil.Error):
            first = psutil.Process(self._process.pid)
            found = [first, *first.children(recursive=True)]
            return [process for process in found if not _is_wall(process)]
        return []

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _wait(self) -> None:
        assert self._process is not None
        code = self._process.wait()
        self.recording.code = 128 - code if code < 0 else code
        self.recording.ended_s = self.now_s()
        self.wake.set()

    def _measure(self) -> None:
        """Keep the most memory that the processes have had together."""
        while self.is_running:
            used = 0
            for process in self._processes():
                with suppress(psutil.Error):
                    used += process.memory_info().rss
            self.recording.peak_bytes = max(self.recording.peak_bytes, used)
            threading.Event().wait(LOOK_S)

    def _text_grew(self, path: str) -> None:
        if _may_be_text(path):
            with self._lock:
                file = self._texts.setdefault(path, _TextFile())
            for line in file.read(self.place.tree / path):
                self._add_line(path, line, is_redrawn=False)

    def _file_changed(self, change: FileChange) -> None:
        with self._lock:
            self.recording.changes.append(change)
        if self._on_change is not None:
            self._on_change(change)
        self.wake.set()

    def _read(self, stream: IO[bytes], name: str) -> None:
        with stream:
            self._read_lines(stream, name)

    def _read_lines(self, stream: IO[bytes], name: str) -> None:
        rest = b""
        while data := os.read(stream.fileno(), READ_BYTES):
            rest += data
            at = 0
            while True:
                ends = [end for end in (rest.find(b"\n", at), rest.find(b"\r", at)) if end >= 0]
                if not ends:
                    break
                end = min(ends)
                self._output(name, rest[at:end], is_redrawn=rest[end : end + 1] == b"\r")
                at = end + 1
            rest = rest[at:][-READ_BYTES:]
        if rest:
            self._output(name, rest, is_redrawn=False)

    def _output(self, stream: str, line: bytes, *, is_redrawn: bool) -> None:
        if line.strip():
            self._add_line(stream, line.decode(errors="replace"), is_redrawn=is_redrawn)

    def _add_line(self, stream: str, text: str, *, is_redrawn: bool) -> None:
        with self._lock:
            lines = self.recording.lines
            if len(lines) < LINES_MAX:
                shown = redacted(text[-LINE_CHARS_MAX:])
                lines.append(OutputLine(len(lines), self.now_s(), stream, shown, is_redrawn))
        self.wake.set()


def _is_wall(process: psutil.Process) -> bool:
    try:
        return process.name() == bubblewrap.NAME
    except psutil.Error:
        return True


_TEXT_ENDINGS = (".csv", ".jsonl", ".ndjson", ".txt", ".log", ".tsv", ".json", ".out")


def _may_be_text(path: str) -> bool:
    return path.lower().endswith(_TEXT_ENDINGS)


class _TextFile:
    """A file of text that may grow: its lines are read as they are added."""

    def __init__(self) -> None:
        self._at = 0
        self._rest = ""

    def read(self, path: Path) -> list[str]:
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                return []
            size = status.st_size
            if size < self._at:  # written anew, so it does not grow by lines
                self._at, self._rest = 0, ""
            if size > TEXT_FILE_BYTES_MAX:
                return []
            with path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        self._at += len(data)
        *lines, self._rest = (self._rest + data.decode(errors="replace")).split("\n")
        return [line for line in lines if line.strip()]
