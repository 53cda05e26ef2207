"""The upload of checkpoints from the trainer's folder up to a manifest in the bucket.

A complete checkpoint is staged, checked again, hashed and sent, and checked once more; its manifest is written last. So an interruption at
any point leaves either no manifest or a correct one. Whether the manifest counts is decided by a separate commit that carries the attempt;
only after that do `latest.json` and the clean-up follow.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.checkpoints.gather import Gatherer
from prime_agent.checkpoints.integrity import violation_of
from prime_agent.checkpoints.latest_json import move_latest
from prime_agent.checkpoints.listing import files_in, size_of, written_s
from prime_agent.checkpoints.newest_checkpoint import Waiting
from prime_agent.checkpoints.retention import Retention
from prime_agent.checkpoints.staging import Vanished, clear, set_aside
from prime_agent.checkpoints.uplink import Uplink
from prime_agent.checkpoints.upload import Cancelled, Sender, Sent
from prime_agent.trainer.step_metrics import NO_METRICS, Metrics
from prime_train.checkpoints.catalog import Reader, read_manifest
from prime_train.core.manifest import Manifest, ManifestFile, ResumePoint
from prime_train.core.retention import Policy, keeps_newest_only
from prime_train.core.spec import RunSpec
from prime_train.ports import Bucket, PermanentError, TemporaryError
from prime_train.trainers import FileInfo, trainer_for

__all__ = ["Cancelled", "LocalCheckpoint", "Uploader", "Vanished"]

ENTRIES_MAX = 100_000
MANIFEST_BYTES_MAX = 16 * 2**20
"""Largest manifest that a reader of the bucket fetches in one piece."""

BEST_BYTES_MAX = 64 * 2**20
"""Largest file in which the trainer's own best checkpoint is looked for; it contains the figures of all steps."""

BEGUN_SHARE_MAX = 0.2
SAVING_QUIET_S = 120
"""Seconds without a write after which a folder counts as the remains of a save, not a save in progress."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalCheckpoint:
    """A complete checkpoint on this machine; `path` is its folder."""

    step: int
    path: Path


class Uploader:
    """The uploads of one attempt.

    `work` is the working tree. `stage` is a folder outside it, on the same file system if hard links are to work. `known` is the checkpoint
    that the attempt resumed from. `files_s`: the time with which the modification times of files are compared, if it is not that of
    `clock`. One thread may `upload` while another calls the other methods.
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
        files_s: Callable[[], int] | None = None,
    ) -> None:
        self._bucket = bucket
        self._spec = spec
        self._trainer = trainer_for(spec)
        self._run_id = run_id
        self._attempt, self._identity = attempt, identity
        self._folder = work / spec.checkpoints.folder
        self._gatherer = Gatherer(self._trainer, spec, work)
        self._stage = stage
        self._waiting = Waiting(stage / f"waiting-{attempt}")
        self._was_there = False
        self._known = known
        self._known_read = known is None
        self._clock, self._files_s = clock, files_s or clock
        self._blobs = Blobs(bucket, run_id, clock)
        self._reader = Reader(bucket, run_id)
        limit = spec.checkpoints.upload_mb_per_s_max
        self.uplink = uplink = Uplink(monotonic_s, bytes_per_s_max=limit * 1e6 if limit else None)
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
        """The newest step that this attempt has uploaded or restored; None if there is none."""
        return self._newest_step if self._newest_step >= 0 else None

    def disregard_present(self) -> tuple[int, ...]:
        """Exclude the checkpoints that exist now from uploads unless they are written again, and return their steps.

        These checkpoints were not made by this attempt, for example if the working tree was copied with its old results. Call this once,
        before the trainer is started. Steps up to the restored one are not returned.
        """
        clear(self._stage)  # left by an earlier agent of this attempt
        self._gatherer.disregard_present()
        self._disregarded = {path.name: written_s(path) for _, path in self._folders()}
        return tuple(sorted(step for step, _ in self._folders() if step > self._newest_step))

    def scan(self, now_s: int) -> list[LocalCheckpoint]:
        """Return the newest checkpoint that is complete and not yet uploaded, as a list of at most one.

        Older ones are left out, so that a slow bucket never lets them pile up; they stay candidates in case the newest one vanishes. The
        content of the returned checkpoint is kept from now on, whatever the trainer does.
        """
        self._gatherer.gather(above=self._newest_step, resumed_step=self._known.step if self._known else 0)
        waiting = self._waiting.newest(above=self._newest_step)
        for step, path in self._newer():
            self._was_there = True
            if waiting is not None and step < waiting.step:
                break
            if self._is_complete(path, now_s):
                waiting = self._waiting.hold(step, path) if not self._spec.checkpoints.in_place else None
                self._gatherer.drop(below=step)
                return [LocalCheckpoint(step, waiting.path if waiting is not None else path)]
        return [LocalCheckpoint(waiting.step, waiting.path)] if waiting is not None else []

    def begun_step(self) -> int:
        """Return the newest step that the trainer has begun to save, complete or not, and that is not uploaded; 0 if there is none."""
        return next((step for step, path in self._newer() if size_of(path) and self._is_begun(path)), 0)

    def is_removed(self) -> bool:
        """Return whether this attempt had checkpoints, and their folder is now missing or empty."""
        return self._was_there and not self._folders()

    def saving(self, now_s: int) -> bool:
        """Return whether the trainer is writing a checkpoint that is newer than the newest complete one."""
        for _, path in self._newer():
            if self._is_complete(path, now_s):
                return False
            if abs(now_s - written_s(path)) <= SAVING_QUIET_S and self._is_begun(path):
                return True
        return False

    @property
    def sent(self) -> Sent:
        """Progress of the upload in progress, or the amounts of the last one."""
        return self._sender.sent

    def overtaken(self, step: int, newer: Iterable[int]) -> bool:
        """Return whether the upload of `step` should be dropped because a newer checkpoint is complete.

        True only if the policy would keep just the newer one and the upload has hardly begun, and never twice in a row, because otherwise a
        slow bucket would never get any checkpoint.
        """
        if self._dropped or not any(other > step for other in newer) or not keeps_newest_only(self._policy, step):
            return False
        sent = self._sender.sent
        self._dropped = sent.bytes_done < BEGUN_SHARE_MAX * sent.bytes_total
        return self._dropped

    def fell_back(self, point: ResumePoint, damaged: Iterable[str]) -> None:
        """Record that the older checkpoint `point` was restored, because chunks with the digests `damaged` are damaged in the bucket; they
        will be uploaded again."""
        self._known, self._known_read = point, False
        self._newest_step = point.step
        self._blobs.distrust(damaged)

    def upload(self, local: LocalCheckpoint, *, cancelled: Callable[[], bool], metrics: Metrics = NO_METRICS) -> Manifest:
        """Upload the checkpoint, its manifest last, and return the manifest. May be called again after a failure.

        Raises Vanished (the trainer deleted or changed the checkpoint meanwhile), Cancelled, TemporaryError or PermanentError. Then there
        is no manifest, or a correct one if only the response to its write was lost.
        """
        stage = self._stage / f"upload-{self._attempt}-{local.step}"
        try:
            manifest = self._upload(local, stage, cancelled, metrics)
        except FileNotFoundError as error:
            raise Vanished(f"{local.path.name} disappeared during its upload") from error
        except OSError as error:
            raise TemporaryError(f"step {local.step} cannot be read: {error.strerror or error}") from error
        finally:
            clear(stage)
        self._newest_step = max(self._newest_step, local.step)
        self._waiting.newest(above=self._newest_step)
        self._dropped = False
        return manifest

    def committed(self, manifest: Manifest, now_s: int) -> None:
        """Move `latest.json` forward and clean up after a commit that was confirmed at `now_s`. Raises the bucket's errors; the commit
        stays valid."""
        self._committed_step = max(self._committed_step, manifest.step)
        self._blobs.trust(manifest)
        move_latest(self._bucket, manifest, now_s)
        self._retention.prune(committed_step=self._committed_step, committed_s=now_s)

    def _upload(self, local: LocalCheckpoint, stage: Path, cancelled: Callable[[], bool], metrics: Metrics) -> Manifest:
        self._trust_known()
        files = set_aside(local.path, stage, copy=self._spec.checkpoints.in_place)
        violation = violation_of(stage, files)
        if violation or not self._trainer.is_complete(self._spec, files, self._files_s()):
            raise Vanished(f"{local.path.name} is no longer complete{f': {violation}' if violation else ''}")
        _check_names(local.step, files)
        self._blobs.see(self._reader.catalog())
        try:
            listed = self._sender.send(stage, files, cancelled=cancelled)
            if files_in(stage) != files:
                # Overwriting a file in place also changes our hard link to it, so the chunks may come from two versions.
                raise Vanished("the trainer wrote into the checkpoint during its upload; set checkpoints.in_place")
            manifest, data = self._manifest(local, listed, metrics, self._best_step(stage))
            self._must_be_there(manifest)
            if cancelled():
                raise Cancelled("the upload was cancelled")
            self._bucket.put(manifest.key, data)
        finally:
            self._blobs.release()
        return manifest

    def _must_be_there(self, manifest: Manifest) -> None:
        """Check, before the manifest is written, that the bucket lists every blob with its size. Raises TemporaryError if one is
        missing."""
        missing = self._reader.catalog().missing(manifest)
        if missing:
            self._blobs.forget(missing)
            raise TemporaryError(f"{missing[0]} and {len(missing) - 1} more blobs in the bucket differ from what was sent")

    def _best_step(self, stage: Path) -> int | None:
        """Return the step of the best checkpoint so far by the trainer's own account in the checkpoint that is being uploaded."""
        texts = {}
        for name in self._trainer.best_files(self._spec):
            with suppress(OSError, ValueError):
                if (stage / name).stat().st_size <= BEST_BYTES_MAX:
                    texts[name] = (stage / name).read_text(encoding="utf-8")
        return self._trainer.best_step(self._spec, texts)

    def _manifest(
        self, local: LocalCheckpoint, files: tuple[ManifestFile, ...], metrics: Metrics, best_step: int | None
    ) -> tuple[Manifest, bytes]:
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
                finite=metrics.finite,
                not_finite_since=metrics.not_finite_since,
                learning_rate=metrics.learning_rate,
                best_step=best_step,
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
        """Trust the blobs of the checkpoint that the attempt resumed from: they were verified byte by byte and need not be uploaded
        again."""
        if self._known_read or self._known is None:
            return
        manifest = read_manifest(self._bucket, self._known.key)
        if manifest is not None:
            self._blobs.trust(manifest)
        self._known_read = True

    def _newer(self) -> Iterator[tuple[int, Path]]:
        """Yield the checkpoint folders newer than everything uploaded or restored, newest first."""
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
            return True  # the folder is changing or cannot be read, so assume a save in progress

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
            violation = f"the checkpoint cannot be read: {error.strerror or error}"
        if violation and self._violations.get(path.name) != violation:
            self._violations[path.name] = violation
            _log.warning("checkpoint %s is not uploaded: %s", path.name, violation)
        return violation is None


def _check_names(step: int, files: tuple[FileInfo, ...]) -> None:
    """Check the names before anything is sent. Raises PermanentError for a name that a manifest cannot hold."""
    try:
        for file in files:
            ManifestFile(path=file.path, size=0)
    except ValueError as error:
        raise PermanentError(f"step {step} cannot be listed in a manifest: {str(error)[:300]}") from error
