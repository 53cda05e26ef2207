"""Download outputs, logs and metrics of a run into a folder; every byte of an output is verified."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from prime_train.checkpoints.progress import Progress, silent
from prime_train.errors import UsageError
from prime_train.outputs.event_files import event_files
from prime_train.outputs.files import WantedFile, WrittenFile, write_files
from prime_train.outputs.lookup import RunOutputs, check_attempt
from prime_train.outputs.manifest import OutputVersion
from prime_train.outputs.rows import has_rows, loses_rows
from prime_train.outputs.stored_content import chunks_of, content_of
from prime_train.text.auto_run import auto_run_files
from prime_train.text.globs import matches

TEXTS_FOLDER = "_run"
"""The folder for logs and metrics, which are not files of the working tree."""


@dataclass(frozen=True)
class WrittenOutputs:
    """What was downloaded. `left_out`: files that were not written because programs would run or obey them
    where they lie, each with the reason.
    """

    files: tuple[WrittenFile, ...]
    left_out: Mapping[str, str]


def get(
    outputs: RunOutputs,
    folder: Path,
    *,
    patterns: Sequence[str] = (),
    attempt: int | None = None,
    step: int | None = None,
    replace: bool = False,
    progress: Progress = silent,
) -> WrittenOutputs:
    """Write the newest version of each output into `folder`, beside it the rows of earlier attempts that it
    lacks, and the logs and metrics of each attempt below `_run/attempt-N` there.

    `patterns`: only files that one of these glob patterns chooses. `attempt`: only of that attempt; `step`:
    outputs as of that step. `replace`: existing files with other content may be overwritten. Raises
    UsageError if there is nothing to get, a file is in the way, an output is damaged, or the folder cannot be
    written to; and the bucket's errors.
    """
    check_attempt(outputs, attempt)
    every = list(_files(outputs, attempt, step))
    left = auto_run_files(file.path for file in every)
    files = [
        file for file in every if not patterns or any(matches(pattern, file.path) for pattern in patterns)
    ]
    if not files:
        what = f"that matches {', '.join(patterns)}" if patterns else "yet"
        raise UsageError(
            f"{outputs.run_id} has no output {what} in {outputs.url}",
            fix="run the command without get to list all outputs",
        )
    chosen = {file.path for file in files}
    left = {path: why for path, why in left.items() if path in chosen}
    files = [file for file in files if file.path not in left]
    return WrittenOutputs(tuple(write_files(folder, files, replace=replace, progress=progress)), left)


def _wanted(outputs: RunOutputs, path: str, version: OutputVersion, part_of: str = "") -> WantedFile:
    file, content = version.file, partial(chunks_of, outputs.bucket, version)
    return WantedFile(path, version.manifest.attempt, file.step, file.size, file.content, content, part_of)


def _earlier_parts(
    outputs: RunOutputs, path: str, newest: OutputVersion, step: int | None, *, taken: Collection[str]
) -> Iterator[WantedFile]:
    """Yield the versions of earlier attempts with rows that the newest version lacks and does not replace,
    such as results/eval.attempt-1.csv for results/eval.csv.
    """
    after: bytes | None = None
    for one in outputs.attempts:
        if one.manifest.key == newest.manifest.key:
            return
        file = one.manifest.newest(step=step).get(path)
        if file is None or file.content == newest.file.content or not has_rows(path, file.size):
            continue
        version = OutputVersion(one.manifest, file)
        after = b"".join(chunks_of(outputs.bucket, newest)) if after is None else after
        pure = PurePosixPath(path)
        name = str(pure.with_name(f"{pure.stem}.{outputs.folder_of(one)}{pure.suffix}"))
        if name not in taken and loses_rows(path, b"".join(chunks_of(outputs.bucket, version)), after):
            yield _wanted(outputs, name, version, path)


def _files(outputs: RunOutputs, attempt: int | None, step: int | None) -> Iterator[WantedFile]:
    newest = outputs.newest(attempt=attempt, step=step)
    for path, version in newest.items():
        yield _wanted(outputs, path, version)
        if attempt is None and has_rows(path, version.file.size):
            yield from _earlier_parts(outputs, path, version, step, taken=newest)
    for one, name, pieces in outputs.texts(attempt=attempt):
        size = sum(stat.size for stat in pieces)
        above = f"{TEXTS_FOLDER}/{outputs.folder_of(one)}"
        yield WantedFile(
            f"{above}/{name}", one.number, None, size, None, partial(content_of, outputs.bucket, pieces)
        )
    yield from event_files(outputs, TEXTS_FOLDER, attempt=attempt)
