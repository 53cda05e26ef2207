"""The upload of outputs: files that have changed are read, cut into chunks, and stored under the hash of
their content; then the list of all outputs of the attempt, its manifest, is written.

An interruption at any point leaves the list as it was, and every file that it names is there. A file that
changes while it is read is uploaded as it was read, and again by the next upload; at the end nothing changes
any more.
"""

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from prime_agent.checkpoints.uplink import Uplink
from prime_agent.deletions import DeletionCounter
from prime_agent.outputs.search import MatchedFile, Search, open_inside, search
from prime_train.buckets.keys import attempt_results_key, output_manifest_key
from prime_train.buckets.port import GET_BYTES_MAX, Bucket
from prime_train.checkpoints.codec import Codec, encode
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import CHUNK_BYTES, Chunk, chunk_sizes
from prime_train.errors import ExternalError, PermanentError
from prime_train.outputs.manifest import OUTPUT_FILES_MAX, OutputFile, OutputManifest
from prime_train.outputs.results.numbers import AttemptResults, Number, parse_attempt_results
from prime_train.spec.checkpoint_names import CheckpointNames, is_place
from prime_train.spec.choices import Compress
from prime_train.spec.spec import RunSpec
from prime_train.text.safe import neutralized

QUIET_S = 2
"""Seconds without a change after which a file counts as written. An upload waits once for so long."""
LIST_S = 20.0
"""Seconds after which an upload that takes long writes the list with what is uploaded so far."""
BETWEEN_S = 5.0
"""Seconds after which an upload that takes long lets what was logged meanwhile be uploaded."""
SHOWN_MAX = 3

_log = logging.getLogger(__name__)


class Stopped(Exception):
    """The agent is leaving."""


class OutputUploader:
    """The outputs of one attempt; only one thread may use it. `work` is the working tree, `clock` returns
    seconds since 1970, `stopped` is set when the agent is leaving, and `newest_step` returns the newest step
    that the trainer has reported; it is asked when a file is read, because minutes can pass between the
    request of an upload and the last file.
    """

    def __init__(
        self,
        bucket: Bucket,
        spec: RunSpec,
        work: Path,
        *,
        run_id: str,
        attempt: int,
        identity: str,
        uplink: Uplink,
        stopped: threading.Event,
        newest_step: Callable[[], int],
        clock: Callable[[], float],
        monotonic_s: Callable[[], float],
        deletions: DeletionCounter | None = None,
    ) -> None:
        self._bucket, self._spec, self._work = bucket, spec, work
        self._deletions = deletions or DeletionCounter(lambda total: None)
        self._run_id, self._attempt, self._identity = run_id, attempt, identity
        self._uplink, self._stopped, self._newest_step = uplink, stopped, newest_step
        self._clock, self._monotonic_s = clock, monotonic_s
        self._patterns = spec.output_patterns
        self._manifest: OutputManifest | None = None
        self._chunks: dict[str, Chunk] = {}
        self._unlisted: set[str] = set()
        """Keys of blobs that were uploaded since the manifest was written."""
        self._is_open = False
        self._between: Callable[[], object] = lambda: None
        self._between_s = 0.0
        self._uploaded: dict[str, tuple[int, int]] = {}
        """Size and modification time of files as they were uploaded, or as they were before the trainer was
        started, by path.
        """

    def disregard_present(self) -> None:
        """Leave out the files that exist now unless they are written again: they came with the working tree.
        Call this once, right before the trainer is started; nothing is uploaded earlier.
        """
        if self._patterns:
            self._uploaded = {path: (file.size, file.mtime_ns) for path, file in self._search().found.items()}
        self._is_open = True

    def upload(self, *, trainer_ended: bool, between: Callable[[], object] = lambda: None) -> str:
        """Upload what has changed, and return which outputs cannot be uploaded as they are, and why; "" if
        all are uploaded. `between` is called every few seconds meanwhile. Raises Stopped, TemporaryError and
        PermanentError; the next upload goes on where this one stopped.
        """
        if not self._patterns or not self._is_open:
            return ""
        self._between, self._between_s = between, self._monotonic_s()
        found = self._search()
        if not trainer_ended and self._is_being_written(found.found.values()):
            if self._stopped.wait(QUIET_S):
                raise Stopped
            found = self._search()
        refused = found.refused
        changed = sorted(
            (file for file in found.found.values() if self._is_changed(file)),
            key=lambda file: (file.size, file.path),
        )
        taken = self._within_limits(changed, refused)
        self._send_all(taken, refused, trainer_ended=trainer_ended)
        # The reasons as one text. A trainer chose the names in it, and a heartbeat can only carry valid
        # Unicode.
        more = f" (and {len(refused) - SHOWN_MAX} more)" if len(refused) > SHOWN_MAX else ""
        return neutralized("; ".join(refused[:SHOWN_MAX])) + more

    def _search(self) -> Search:
        names = CheckpointNames.of(self._spec)

        def is_checkpoint(path: str) -> bool:
            above, _, name = path.rpartition("/")
            return is_place(names.folder, above or ".") and names.is_part(name)

        return search(self._work, self._patterns, is_left_out=is_checkpoint)

    def _is_being_written(self, files: Iterable[MatchedFile]) -> bool:
        now_s = self._clock()
        return any(abs(now_s - file.mtime_ns / 1e9) < QUIET_S and self._is_changed(file) for file in files)

    def _is_changed(self, file: MatchedFile) -> bool:
        return self._uploaded.get(file.path) != (file.size, file.mtime_ns)

    def _within_limits(self, files: list[MatchedFile], refused: list[str]) -> list[MatchedFile]:
        """Return the files that the limits allow, the smallest first, and add a reason for each of the others
        to `refused`.
        """
        if not files:
            return []
        newest = self._current().newest()
        sizes = {path: file.size for path, file in newest.items()}
        total, taken = sum(sizes.values()), []
        each_gib, all_gib = self._spec.output_file_gib_max, self._spec.outputs_gib_max
        for file in files:
            grown = total - sizes.get(file.path, 0) + file.size
            if file.size > each_gib * 2**30:
                refused.append(
                    f"{file.path} has {_gib(file.size)}, more than output_file_gib_max ({each_gib:g} GiB)"
                )
            elif grown > all_gib * 2**30:
                refused.append(
                    f"{file.path}: with it the outputs have {_gib(grown)}, more than outputs_gib_max "
                    f"({all_gib:g} GiB)"
                )
            elif len(sizes) >= OUTPUT_FILES_MAX and file.path not in sizes:
                refused.append(
                    f"{file.path} is one file more than the {OUTPUT_FILES_MAX} outputs that a run may have"
                )
            else:
                taken.append(file)
                total, sizes[file.path] = grown, file.size
        return taken

    def _send_all(self, files: list[MatchedFile], refused: list[str], *, trainer_ended: bool) -> None:
        sent: list[tuple[MatchedFile, OutputFile]] = []
        listed_s = self._monotonic_s()
        for file in files:
            if self._stopped.is_set():
                raise Stopped
            try:
                listed = self._send(file, must_rest=trainer_ended)
            except FileNotFoundError:
                continue
            except OSError as error:
                refused.append(f"{file.path} cannot be read: {error.strerror or error}")
                continue
            if listed is not None:
                sent.append((file, listed))
            elif trainer_ended:
                refused.append(f"{file.path} is still being written, although the trainer has ended")
            if self._monotonic_s() - listed_s >= LIST_S:
                self._list(sent)
                listed_s, sent = self._monotonic_s(), []
        self._list(sent)

    def _send(self, file: MatchedFile, *, must_rest: bool) -> OutputFile | None:
        """Upload one file, and return it as the manifest lists it; None if it was truncated meanwhile, or
        with `must_rest` changed at all.
        """
        descriptor, step = open_inside(self._work.resolve(), file.real), self._newest_step()
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            chunks = []
            for index, size in enumerate(chunk_sizes(file.size)):
                data = os.pread(descriptor, size, index * CHUNK_BYTES)
                if len(data) != size:
                    return None
                chunks.append(self._stored(data))
            if must_rest and os.fstat(descriptor).st_mtime_ns != file.mtime_ns:
                return None
        finally:
            os.close(descriptor)
        return OutputFile(
            path=file.path,
            size=file.size,
            chunks=tuple(chunks),
            mtime_s=file.mtime_ns // 10**9,
            step=step,
            uploaded_s=int(self._clock()),
        )

    def _stored(self, data: bytes) -> Chunk:
        digest, manifest = digest_of(data), self._current()
        if digest in self._chunks:
            return self._chunks[digest]
        codec = Codec.NONE if self._spec.checkpoints.compress is Compress.OFF else Codec.ZSTD
        stored = encode(codec, data)
        if len(stored) >= len(data):
            codec, stored = Codec.NONE, data
        chunk = Chunk(digest=digest, size=len(data), stored=len(stored), codec=codec.value)
        key = manifest.key_of(chunk)
        self._unlisted.add(key)
        if self._monotonic_s() - self._between_s >= BETWEEN_S:
            self._between()
            self._between_s = self._monotonic_s()
        with self._uplink.sending(len(stored), stopped=self._stopped):
            self._bucket.put(key, stored)
        return chunk

    # --------------------------------------------------------------------------------------------------------
    # the manifest

    def _current(self) -> OutputManifest:
        """Return the manifest as it is in the bucket, where an earlier agent of this attempt may have written
        it.
        """
        if self._manifest is None:
            content = self._bucket.get(output_manifest_key(self._run_id, self._attempt, self._identity))
            self._adopt(
                parsed_manifest(content.data)
                if content is not None
                else OutputManifest(run=self._run_id, attempt=self._attempt, identity=self._identity)
            )
        assert self._manifest is not None
        return self._manifest

    def _adopt(self, manifest: OutputManifest) -> None:
        self._manifest = manifest
        self._chunks = {chunk.digest: chunk for file in manifest.files for chunk in file.chunks}

    def _list(self, sent: Sequence[tuple[MatchedFile, OutputFile]]) -> None:
        """Write the manifest with these files, and delete the blobs that it does not list, or does not list
        any longer.
        """
        if not sent and not self._unlisted:
            return
        before = after = self._current()
        newest = before.newest()
        new = [
            listed
            for _, listed in sent
            if listed.path not in newest or newest[listed.path].chunks != listed.chunks
        ]
        if new:
            after = before.with_versions(new)
            self._put_manifest(after)
        self._delete((before.blobs().keys() | self._unlisted) - after.blobs().keys(), before.blobs())
        self._unlisted.clear()
        # A file may be changed once more within the resolution of its modification time, so it is read again
        # by the next upload.
        now_s = self._clock()
        self._uploaded |= {
            file.path: (file.size, file.mtime_ns)
            for file, _ in sent
            if abs(now_s - file.mtime_ns / 1e9) >= QUIET_S
        }

    def _put_manifest(self, manifest: OutputManifest) -> None:
        data = manifest.model_dump_json(exclude_defaults=True).encode()
        if len(data) > GET_BYTES_MAX:
            raise PermanentError(
                f"the manifest of outputs has {len(data)} bytes, more than {GET_BYTES_MAX}; let the patterns "
                "choose less"
            )
        # If the answer to the write is lost, only the bucket knows which manifest holds.
        self._manifest = None
        self._bucket.put(manifest.key, data)
        self._adopt(manifest)

    def _delete(self, keys: Iterable[str], listed: Mapping[str, int]) -> None:
        """Delete the blobs; those that a version `listed` are told, with their sizes."""
        for key in sorted(keys):
            try:
                self._bucket.delete(key)
            except ExternalError as error:
                _log.info("an older version of an output stays in the bucket: %s", error)
                return
            if key in listed:
                self._deletions.output(listed[key])


def parsed_manifest(data: bytes) -> OutputManifest:
    """Return the manifest of an attempt's outputs. Raises PermanentError if it is none."""
    try:
        return OutputManifest.model_validate_json(data)
    except ValueError as error:
        raise PermanentError(
            f"the manifest of outputs in the bucket cannot be read: {str(error)[:200]}"
        ) from error


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g} GiB" if size >= 2**20 else f"{size} bytes"


class ResultsUploader:
    """The numbers that one attempt resulted in, kept in one object in the bucket. `add` may be called from
    any thread, `upload` from one only."""

    def __init__(self, bucket: Bucket, *, run_id: str, attempt: int, identity: str) -> None:
        self._bucket = bucket
        self._of = run_id, attempt, identity
        self._stored: AttemptResults | None = None
        self._new: list[Number] = []
        self._lock = threading.Lock()

    def add(self, numbers: Iterable[Number]) -> None:
        with self._lock:
            self._new += numbers

    def upload(self) -> None:
        """Store the numbers that were added since the last call. Raises the bucket's errors; the next call
        tries again."""
        with self._lock:
            new = tuple(self._new)
        if not new:
            return
        results = self._known().with_numbers(new)
        self._bucket.put(results.key, results.data)
        self._stored = results
        with self._lock:
            del self._new[: len(new)]

    def _known(self) -> AttemptResults:
        """Return the results in the bucket, where an earlier agent of this attempt may have stored some."""
        if self._stored is None:
            run_id, attempt, identity = self._of
            content = self._bucket.get(attempt_results_key(run_id, attempt, identity))
            found = (
                parse_attempt_results(content.data, run_id, attempt, identity)
                if content is not None
                else None
            )
            self._stored = found or AttemptResults(run=run_id, attempt=attempt, identity=identity)
        return self._stored
