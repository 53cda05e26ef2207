"""Look up the outputs, logs and metrics that the attempts of a run stored in the bucket."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from prime_train.app.run_access import StoredRuns
from prime_train.buckets.keys import (
    METRICS_STREAM,
    NO_IDENTITY,
    OUTPUT_MANIFEST,
    STREAMS,
    output_manifest_key,
    outputs_prefix,
    parse_output_key,
    run_prefix,
)
from prime_train.buckets.port import Bucket, Stat, small_object
from prime_train.checkpoints.lookup import Found, look
from prime_train.errors import UsageError
from prime_train.outputs.manifest import OutputManifest, OutputVersion, newest_outputs


@dataclass(frozen=True)
class AttemptOutputs:
    """The outputs, logs and metrics of one attempt. `manifest`: the list of its outputs, empty if there is
    none; `pieces`: the objects that a log or the metrics consist of, in order, by name.
    """

    number: int
    identity: str
    manifest: OutputManifest
    pieces: Mapping[str, Sequence[Stat]]

    @property
    def written_s(self) -> int:
        return max((stat.written_s for stats in self.pieces.values() for stat in stats), default=0)


@dataclass(frozen=True)
class RunOutputs:
    """The outputs, logs and metrics of a run, oldest attempt first. `unread`: keys of manifests that cannot
    be read.
    """

    run_id: str
    url: str
    bucket: Bucket
    attempts: Sequence[AttemptOutputs]
    now_s: int
    unread: Sequence[str] = ()

    def newest(self, *, attempt: int | None = None, step: int | None = None) -> dict[str, OutputVersion]:
        """Return the newest version of each output, by path; with `attempt` only of that attempt, with `step`
        as of that step.
        """
        return newest_outputs([one.manifest for one in self._of(attempt)], step=step)

    def texts(self, *, attempt: int | None = None) -> Iterator[tuple[AttemptOutputs, str, Sequence[Stat]]]:
        """Yield attempt, name and pieces of all logs and metrics; with `attempt` only of that attempt."""
        for one in self._of(attempt):
            yield from ((one, name, one.pieces[name]) for name in STREAMS if name in one.pieces)

    def folder_of(self, one: AttemptOutputs) -> str:
        """Return the name of the folder for the attempt's files; it contains the identity if two attempts
        have the same number.
        """
        is_twin = sum(other.number == one.number for other in self.attempts) > 1
        return f"attempt-{one.number}-{one.identity}" if is_twin else f"attempt-{one.number}"

    def _of(self, attempt: int | None) -> list[AttemptOutputs]:
        return [one for one in self.attempts if attempt in (None, one.number)]


class OutputRow(TypedDict):
    """An output, or a log or the metrics of an attempt. `step`: the newest step when it was read, None for
    logs and metrics; `versions`: how many versions of it that attempt has in the bucket.
    """

    path: str
    kind: str
    attempt: int
    step: int | None
    size_bytes: int
    versions: int
    uploaded_s: int


def outputs_of(among: StoredRuns, run: str) -> RunOutputs:
    """Return the outputs, logs and metrics of the run with the id `run`. Raises UsageError if there is no
    such run, and the bucket's errors.
    """
    found = look(among, run, below=run_prefix)
    attempts, unread = _attempts(found)
    return RunOutputs(found.run_id, found.url, found.bucket, attempts, found.now_s, unread)


def check_attempt(outputs: RunOutputs, number: int | None) -> None:
    """Raise UsageError if the attempt stored no outputs, logs or metrics."""
    there = sorted({one.number for one in outputs.attempts})
    if number is not None and number not in there:
        fix = f"these did: {', '.join(map(str, there))}" if there else "no attempt has left any yet"
        raise UsageError(f"attempt {number} of {outputs.run_id} left no outputs in {outputs.url}", fix=fix)


def rows_of(outputs: RunOutputs, *, attempt: int | None = None, step: int | None = None) -> list[OutputRow]:
    """Return a row for the newest version of each output, then for the logs and metrics of each attempt."""
    check_attempt(outputs, attempt)
    return [*_output_rows(outputs.newest(attempt=attempt, step=step)), *_text_rows(outputs, attempt)]


def _output_rows(versions: Mapping[str, OutputVersion]) -> Iterator[OutputRow]:
    for path, version in versions.items():
        yield OutputRow(
            path=path,
            kind="output",
            attempt=version.manifest.attempt,
            step=version.file.step,
            size_bytes=version.file.size,
            versions=sum(file.path == path for file in version.manifest.files),
            uploaded_s=version.file.uploaded_s,
        )


def _text_rows(outputs: RunOutputs, attempt: int | None) -> Iterator[OutputRow]:
    for one, name, pieces in outputs.texts(attempt=attempt):
        yield OutputRow(
            path=name,
            kind="metrics" if name == METRICS_STREAM else "log",
            attempt=one.number,
            step=None,
            size_bytes=sum(stat.size for stat in pieces),
            versions=1,
            uploaded_s=max(stat.written_s for stat in pieces),
        )


@dataclass
class _Objects:
    has_manifest: bool = False
    pieces: dict[str, list[Stat]] = field(default_factory=dict)


def _attempts(found: Found) -> tuple[list[AttemptOutputs], list[str]]:
    objects: dict[tuple[int, str], _Objects] = {}
    for stat in found.bucket.list(outputs_prefix(found.run_id)):
        if (parsed := parse_output_key(found.run_id, stat.key)) is None:
            continue
        number, identity, name = parsed
        one = objects.setdefault((number, identity), _Objects())
        if name == OUTPUT_MANIFEST:
            one.has_manifest = True
        else:
            one.pieces.setdefault(name, []).append(stat)
    attempts, unread = [], []
    for (number, identity), one in objects.items():
        manifest = _manifest(found, number, identity) if one.has_manifest else None
        if one.has_manifest and manifest is None:
            unread.append(output_manifest_key(found.run_id, number, identity))
        empty = OutputManifest(run=found.run_id, attempt=number, identity=identity)
        attempts.append(AttemptOutputs(number, identity, manifest or empty, one.pieces))
    known = (
        {attempt.number: attempt.identity or NO_IDENTITY for attempt in found.record.run.attempts}
        if found.record is not None
        else {}
    )
    # If a number was given twice, the attempt that the store knows counts as the newer one.
    return sorted(
        attempts, key=lambda one: (one.number, known.get(one.number) == one.identity, one.written_s)
    ), unread


def _manifest(found: Found, number: int, identity: str) -> OutputManifest | None:
    """Return the manifest of the attempt, which a machine wrote; None if it is not valid, or of another
    attempt.
    """
    key = output_manifest_key(found.run_id, number, identity)
    content = small_object(found.bucket, key)
    try:
        manifest = OutputManifest.model_validate_json(content.data) if content is not None else None
    except ValueError:
        return None
    return manifest if manifest is not None and manifest.key == key else None
