"""From the trainer's folder to a manifest in the bucket.

A checkpoint that is complete is set aside, looked at again, hashed and sent, looked at once more, and its manifest is written last: a cut
at any point leaves either no manifest or a true one. Whether the manifest counts is decided elsewhere, by a commit that carries the
attempt; only after that do `latest.json` and the clean-up follow.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.checkpoints.integrity import violation_of
from prime_agent.checkpoints.latest import move_latest
from prime_agent.checkpoints.listing import files_in, size_of, written_s
from prime_agent.checkpoints.newest import Waiting
from prime_agent.checkpoints.retention import Retention
from prime_agent.checkpoints.stage import Vanished, clear, set_aside
from prime_agent.checkpoints.uplink import Uplink
from prime_agent.checkpoints.upload import Cancelled, Sender, Sent
from prime_agent.trainer.step_metrics import NO_METRICS, Metrics
from prime_train.checkpoints.catalog import Reader, read_manifest
from prime_train.core.manifest import Manifest, ManifestFile, ResumePoint
from prime_train.core.retention import Policy, keeps_newest_only
from prime_train.core.spec import RunSpec
from prime_train.ports import Bucket, PermanentError, TemporaryError
from prime_train.trainers import FileSeen, trainer_for

__all__ = ["Cancelled", "LocalCheckpoint", "Uploader", "Vanished"]

ENTRIES_MAX = 100_000
MANIFEST_BYTES_MAX = 16 * 2**20
"""What a reader of the bucket takes in one piece."""

BEGUN_SHARE_MAX = 0.2
SAVING_QUIET_S = 120
"""A folder that nothing was written to for so long is no save under way but the rest of one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalCheckpoint:
    """A complete checkpoint on this machine; `path` is its folder."""

    step: int
    path: Path


class Uploader:
    """The checkpoints of one attempt.

    `work`: the working tree. `stage`: a folder outside of it, on the same file system where hard links are to work. `known`: what the
    attempt resumed from. One thread may `upload` while another calls the other methods.
    """

    def __init__(
        self,
        *,
        bucket: Bucket,
        spec: RunSpec,
        run_id: str,
        attempt: int,
        work: Path,
        stage: Path,
        known: ResumePoint | None,
        clock: Callable[[], int],
        monotonic_s: Callable[[], float],
        identity: str = "",
    ) -> None:
        self._bucket = bucket
        self._spec = spec
        self._trainer = trainer_for(spec)
        self._run_id = run_id
        self._attempt, self._identity = attempt, identity
        self._folder = work / spec.checkpoints.folder
        self._stage = stage
        self._waiting = Waiting(stage / f"waiting-{attempt}")
        self._was_there = False
        self._known = known
        self._known_read = known is None
        self._clock = clock
        self._blobs = Blobs(bucket, run_id, clock)
        self._reader = Reader(bucket, run_id)
        limit = spec.checkpoints.upload_mb_per_s_max
        uplink = Uplink(monotonic_s, bytes_per_s_max=limit * 1e6 if limit else None)
        cores = max(1, (os.cpu_count() or 1) // 2)
        self._sender = Sender(self._blobs, uplink, compress=spec.checkpoints.compress, monotonic_s=monotonic_s, cores=cores)
        self._policy = Policy.of(spec.checkpoints)
        self._retention = Retention(bucket, self._blobs, run_id, policy=self._policy, pinned=known, clock=clock)
        self._dropped = False
        self._newest_step = known.step if known else -1
        self._committed_step = -1
        self._violations: dict[str, str] = {}
        self._disregarded: dict[str, float] = {}

    @property
    def uploaded_step(self) -> int | None:
        """The newest step that is in the bucket by this attempt's doing, or was restored by it; None: there is none."""
        return self._newest_step if self._newest_step >= 0 else None

    def disregard_present(self) -> tuple[int, ...]:
        """The checkpoints that lie here now are somebody else's, such as those of a working tree that was copied with its old results:
        they are not uploaded unless they are written anew. To be called once, before the trainer is started; returns their steps, but
        for those no newer than what was restored.
        """
        clear(self._stage)  # what an earlier agent of this attempt has left
        self._disregarded = {path.name: written_s(path) for _, path in self._folders()}
        return tuple(sorted(step for step, _ in self._folders() if step > self._newest_step))

    def scan(self, now_s: int) -> list[LocalCheckpoint]:
        """What is complete and not yet uploaded, oldest first: the newest one, if there is any. Those it has overtaken are left out, so
        that a slow bucket never lets them pile up; they wait on in case the newest one vanishes. From the moment it is found its content
        is held, whatever the trainer does.
        """
        held = self._waiting.newest(above=self._newest_step)
        for step, path in self._newer():
            self._was_there = True
            if held is not None and step < held.step:
                break
            if self._is_complete(path, now_s):
                held = self._waiting.hold(step, path) if not self._spec.checkpoints.in_place else None
                return [LocalCheckpoint(step, held.path if held is not None else path)]
        return [LocalCheckpoint(held.step, held.path)] if held is not None else []

    def begun_step(self) -> int:
        """The newest step that the trainer has begun to save, complete or not, and that is not uploaded; 0: there is none."""
        return next((step for step, path in self._newer() if size_of(path) and self._is_begun(path)), 0)

    def is_removed(self) -> bool:
        """Whether there were checkpoints of this attempt, and the folder that held them is gone, or empty."""
        return self._was_there and not self._folders()

    def saving(self, now_s: int) -> bool:
        """Whether the trainer is writing a checkpoint that is newer than the newest complete one."""
        for _, path in self._newer():
            if self._is_complete(path, now_s):
                return False
            if abs(now_s - written_s(path)) <= SAVING_QUIET_S and self._is_begun(path):
                return True
        return False

    @property
    def sent(self) -> Sent:
        """How far the upload under way is, or what the last one moved."""
        return self._sender.sent

    def overtaken(self, step: int, newer: Iterable[int]) -> bool:
        """Whether the upload of `step` is to be dropped because a newer checkpoint is complete: only where the policy would keep nothing
        but the newer one, when it has hardly begun, and never twice in a row, or a slow bucket would never get any.
        """
        if self._dropped or not any(other > step for other in newer) or not keeps_newest_only(self._policy, step):
            return False
        sent = self._sender.sent
        self._dropped = sent.bytes_done < BEGUN_SHARE_MAX * sent.bytes_total
        return self._dropped

    def fell_back(self, point: ResumePoint, damaged: Iterable[str]) -> None:
        """An older checkpoint was restored, because chunks with these digests are damaged in the bucket: they are sent anew."""
        self._known, self._known_read = point, False
        self._newest_step = point.step
        self._blobs.distrust(damaged)

    def upload(self, local: LocalCheckpoint, *, cancelled: Callable[[], bool], metrics: Metrics = NO_METRICS) -> Manifest:
        """Puts the checkpoint into the bucket, its manifest last, and returns it once it is there; asking again after a failure is fine.

        Raises Vanished (the trainer removed or changed it meanwhile), Cancelled, TemporaryError or PermanentError; then there is no
        manifest, or, when the answer to its writing was lost, a true one.
        """
        stage = self._stage / f"upload-{self._attempt}-{local.step}"
        try:
            manifest = self._upload(local, stage, cancelled, metrics)
        except FileNotFoundError as error:
            raise Vanished(f"{local.path.name} vanished while it was uploaded") from error
        except OSError as error:
            raise TemporaryError(f"step {local.step} cannot be read: {error.strerror or error}") from error
        finally:
            clear(stage)
        self._newest_step = max(self._newest_step, local.step)
        self._waiting.newest(above=self._newest_step)
        self._dropped = False
        return manifest

    def committed(self, manifest: Manifest, now_s: int) -> None:
        """A commit was confirmed at `now_s`: moves `latest.json` on and cleans up. Raises what the bucket raises; the commit stands."""
        self._committed_step = max(self._committed_step, manifest.step)
        self._blobs.trust(manifest)
        move_latest(self._bucket, manifest, now_s)
        self._retention.prune(committed_step=self._committed_step, committed_s=now_s)

    def _upload(self, local: LocalCheckpoint, stage: Path, cancelled: Callable[[], bool], metrics: Metrics) -> Manifest:
        self._trust_known()
        files = set_aside(local.path, stage, copy=self._spec.checkpoints.in_place)
        violation = violation_of(stage, files)
        if violation or not self._trainer.is_complete(self._spec, files, self._clock()):
            raise Vanished(f"{local.path.name} is not complete any more{f': {violation}' if violation else ''}")
        _check_names(local.step, files)
        self._blobs.see(self._reader.catalog())
        try:
            listed = self._sender.send(stage, files, cancelled=cancelled)
            if files_in(stage) != files:
                # A trainer that overwrites a file reaches our hard link of it too: the chunks may be of two files.
                raise Vanished("the trainer wrote into the checkpoint while it was uploaded; set checkpoints.in_place")
            manifest, data = self._manifest(local, listed, metrics)
            self._must_be_there(manifest)
            if cancelled():
                raise Cancelled("the upload was called off")
            self._bucket.put(manifest.key, data)
        finally:
            self._blobs.release()
        return manifest

    def _must_be_there(self, manifest: Manifest) -> None:
        """Before a manifest says so: every blob is in the bucket's own list, with its size."""
        missing = self._reader.catalog().missing(manifest)
        if missing:
            self._blobs.forget(missing)
            raise TemporaryError(f"{missing[0]} and {len(missing) - 1} more are not in the bucket as they were sent")

    def _manifest(self, local: LocalCheckpoint, files: tuple[ManifestFile, ...], metrics: Metrics) -> tuple[Manifest, bytes]:
        try:
            manifest = Manifest(
                run=self._run_id,
                attempt=self._attempt,
                step=local.step,
                created_s=self._clock(),
                folder=local.path.name,
                files=files,
                loss=metrics.loss,
                reward=metrics.reward,
                identity=self._identity,
            )
            data = manifest.model_dump_json(exclude_none=True).encode()
        except ValueError as error:
            raise PermanentError(f"step {local.step} cannot be listed in a manifest: {str(error)[:300]}") from error
        if len(data) > MANIFEST_BYTES_MAX:
            raise PermanentError(
                f"step {local.step}: the manifest of {len(files)} files has {len(data)} bytes, more than {MANIFEST_BYTES_MAX}"
            )
        return manifest, data

    def _trust_known(self) -> None:
        """What the attempt resumed from was verified byte by byte, so its blobs need not be sent again."""
        if self._known_read or self._known is None:
            return
        manifest = read_manifest(self._bucket, self._known.key)
        if manifest is not None:
            self._blobs.trust(manifest)
        self._known_read = True

    def _newer(self) -> Iterator[tuple[int, Path]]:
        """Checkpoint folders newer than all that is uploaded or restored, newest first."""
        for step, path in sorted(self._folders(), reverse=True):
            before_s = self._disregarded.get(path.name)
            if step > self._newest_step and (before_s is None or written_s(path) != before_s):
                yield step, path

    def _folders(self) -> list[tuple[int, Path]]:
        try:
            with os.scandir(self._folder) as entries:
                names = [entry.name for entry in islice(entries, ENTRIES_MAX) if entry.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = ((self._trainer.step_of(self._spec, name), self._folder / name) for name in names)
        return [(step, path) for step, path in found if step is not None]

    def _is_begun(self, path: Path) -> bool:
        try:
            return self._trainer.is_begun(self._spec, files_in(path))
        except (OSError, PermanentError):
            return True  # it changes under our eyes, or cannot be read: the trainer gets the time

    def _is_complete(self, path: Path, now_s: int) -> bool:
        try:
            files = files_in(path)
            if not self._trainer.is_complete(self._spec, files, now_s):
                return False
            violation = violation_of(path, files)
        except FileNotFoundError:
            return False
        except PermanentError as error:
            violation = str(error)
        except OSError as error:
            violation = f"it cannot be read: {error.strerror or error}"
        if violation and self._violations.get(path.name) != violation:
            self._violations[path.name] = violation
            _log.warning("checkpoint %s is not uploaded: %s", path.name, violation)
        return violation is None


def _check_names(step: int, files: tuple[FileSeen, ...]) -> None:
    """Before anything is sent. PermanentError: a name that no manifest can hold."""
    try:
        for file in files:
            ManifestFile(path=file.path, size=0)
    except ValueError as error:
        raise PermanentError(f"step {step} cannot be listed in a manifest: {str(error)[:300]}") from error
