"""The metrics of a run as TensorBoard event files."""

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prime_train.buckets.keys import METRICS_STREAM
from prime_train.buckets.port import Bucket
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.outputs.event_files_format import event_records
from prime_train.outputs.files import WantedFile, WrittenFile, write_files
from prime_train.outputs.lookup import AttemptOutputs, RunOutputs, check_attempt
from prime_train.outputs.metric_rows import metric_rows
from prime_train.outputs.stored_content import lines_of

FILE_NAME = "events.out.tfevents.prime-train"
"""A file name that TensorBoard recognises, because it contains `tfevents`."""


@dataclass(frozen=True)
class EventFiles:
    """The event files of a run, one for each attempt that reported metrics. `folder`: what TensorBoard is to read."""

    folder: Path
    files: tuple[WrittenFile, ...]

    @property
    def program(self) -> str:
        """The path of TensorBoard. Raises UsageError if it is not installed."""
        program = shutil.which("tensorboard")
        if program is None:
            fix = f"install it (pip install tensorboard), then: {self.command}"
            raise UsageError("TensorBoard is not installed", fix=fix, code=Exit.EXTERNAL_REFUSED)
        return program

    @property
    def words(self) -> list[str]:
        """The command that shows the files, as words."""
        return ["tensorboard", "--logdir", str(self.folder)]

    @property
    def command(self) -> str:
        return shlex.join(self.words)


def write_event_files(outputs: RunOutputs, folder: Path, *, attempt: int | None = None) -> EventFiles:
    """Write the metrics of each attempt, or of one, as `RUN/attempt-N/events.out.tfevents.prime-train` in `folder`; files of an earlier
    call are replaced. Raises UsageError if there are no metrics or the folder cannot be written to, and the bucket's errors."""
    check_attempt(outputs, attempt)
    files = list(event_files(outputs, outputs.run_id, attempt=attempt))
    if not files:
        fix = "an attempt uploads them within a minute after its trainer has reported a step"
        raise UsageError(f"{outputs.run_id} has no metrics in {outputs.url}", fix=fix)
    return EventFiles(folder, tuple(write_files(folder, files)))


def event_files(outputs: RunOutputs, folder: str, *, attempt: int | None = None) -> Iterator[WantedFile]:
    """Yield the event file of each attempt that reported metrics, below `folder`."""
    for one, name, _ in outputs.texts(attempt=attempt):
        if name == METRICS_STREAM:
            content = partial(_events, outputs.bucket, one)
            yield WantedFile(f"{folder}/{outputs.folder_of(one)}/{FILE_NAME}", one.number, None, 0, None, content)


def _events(bucket: Bucket, one: AttemptOutputs) -> Iterator[bytes]:
    return event_records(metric_rows(lines_of(bucket, one.pieces[METRICS_STREAM])))
