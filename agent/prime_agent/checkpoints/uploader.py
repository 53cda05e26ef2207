"""The upload of checkpoints from the trainer's folder up to a manifest in the bucket.

A complete checkpoint is staged, checked again, hashed and sent, and checked once more; its manifest is
written last. So an interruption at any point leaves either no manifest or a correct one. Whether the manifest
counts is decided by a separate commit that carries the attempt; only after that do `latest.json` and the
clean-up follow.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.checkpoints.gather import Gatherer
from prime_agent.checkpoints.integrity import violation_of
from prime_agent.checkpoints.listing import files_in
from prime_agent.checkpoints.newest_checkpoint import VersionCopies, Waiting
from prime_agent.checkpoints.open_files import Identity
from prime_agent.checkpoints.pointers import is_pointed_at, pointers_of
from prime_agent.checkpoints.promise import REFUSALS_MAX, RefusedEntry, why_incomplete
from prime_agent.checkpoints.rechecks.second_look import SHAPES_MAX, SecondLook
from prime_agent.checkpoints.rechecks.verification import Verification
from prime_agent.checkpoints.retention import Retention, move_latest
from prime_agent.checkpoints.staging import Vanished, clear, set_aside
from prime_agent.checkpoints.units import Refused, Unit, Units
from prime_agent.checkpoints.uplink import Uplink
from prime_agent.checkpoints.upload import Cancelled, Sender, Sent
from prime_agent.deletions import DeletionCounter
from prime_agent.trainer.step_metrics import NO_METRICS, Metrics
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader, read_manifest
from prime_train.checkpoints.manifest import Manifest, ManifestFile, Pointer
from prime_train.checkpoints.retention import RetentionPolicy, keeps_newest_only
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.spec.spec import RunSpec
from prime_train.trainers.checkpoint_folders import shards_complete
from prime_train.trainers.of_spec import FileInfo, trainer_for
from prime_train.trainers.registry import TRAINERS

__all__ = ["Cancelled", "LocalCheckpoint", "RefusedEntry", "Uploader", "Vanished"]

MANIFEST_BYTES_MAX = 16 * 2**20
"""Largest manifest that a reader of the bucket fetches in one piece."""

BEST_BYTES_MAX = 64 * 2**20
"""Largest file in which the trainer's own best checkpoint is looked for; it contains the figures of all
steps.
"""

MANIFEST_WRITES_MAX = 3
"""How often a manifest is written until the bucket has it."""

BEGUN_SHARE_MAX = 0.2
SAVING_QUIET_S = 120
"""Seconds without a write after which a folder counts as the remains of a save, not a save in progress."""

_log = logging.getLogger(__name__)


QUIET_S = 0.25
"""Seconds without a change after which a file that nobody has open for writing is complete. What the trainer
writes right after it, such as a pointer, is begun by then.
"""
LATE_S = 1.0
"""Seconds after which every line that the trainer printed before it closed a file has arrived."""


@dataclass(frozen=True)
class LocalCheckpoint:
    """A complete checkpoint on this machine; `path` is its folder, or the folder that its files are in by
    their paths. `unit`: where the trainer has it; `is_closed`: whether it is complete because nobody has its
    files open for writing; `pointers`: what is beside it.
    """

    step: int
    path: Path
    unit: Unit | None = None
    is_closed: bool = False
    place: str = ""
    pointers: tuple[Pointer, ...] = ()
    is_held: bool = False
    is_again: bool = False
    """Whether it is to be uploaded although a newer one was: it has changed since its own upload, or is the
    trainer's best.
    """

    @property
    def name(self) -> str:
        return self.unit.name if self.unit is not None else self.path.name

    @property
    def is_folder(self) -> bool:
        return self.unit is None or not self.unit.members


@dataclass(frozen=True)
class Means:
    """What the uploads know of the running trainer. `writers`: the files that it has open for writing, None
    if that is unknown; `reached`: the step that it had reached at a time in seconds since 1970; `gone_on`:
    whether it has reached a step after this one, or ended in order; `is_heard`: whether the control plane
    answers; `fresh_below` and `header`: as in the manifest; `now_s`: this machine's clock; `deletions`:
    counts what is deleted.
    """

    writers: Callable[[], frozenset[Identity] | None] = lambda: None
    reached: Callable[[float], int] = lambda at_s: 0
    gone_on: Callable[[int], bool] = lambda step: False
    is_heard: Callable[[], bool] = lambda: True
    fresh_below: Callable[[], int | None] = lambda: None
    header: Callable[[], str] = lambda: ""
    now_s: Callable[[], float] = time.time
    deletions: DeletionCounter | None = None


class Uploader:
    """The uploads of one attempt.

    `work` is the working tree. `stage` is a folder outside it, on the same file system if hard links are to
    work. `known` is the checkpoint that the attempt resumed from. `files_s`: the time with which the
    modification times of files are compared, if it is not that of `clock`. One thread may `upload` while
    another calls the other methods.
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
        means: Means | None = None,
    ) -> None:
        self._bucket = bucket
        self._spec = spec
        self._trainer = trainer_for(spec)
        self._run_id = run_id
        self._attempt, self._identity = attempt, identity
        self._work, self._means = work, means or Means()
        self._names = CheckpointNames.of(spec)
        self._gatherer = Gatherer(self._trainer, spec, work)
        accepts_files = self._trainer.gathering(spec) is None
        self._units = Units(self._names, work, accepts_files=accepts_files, reached=self._means.reached)
        self._stage = stage
        self._waiting = Waiting(stage / f"waiting-{attempt}")
        self._versions = VersionCopies(stage / f"version-{attempt}")
        self._held: dict[int, LocalCheckpoint] = {}
        self._learned: dict[str, Pointer] = {}
        self._pointed: tuple[tuple[Path, float] | None, tuple[Pointer, ...]] = (None, ())
        self._refused: tuple[Refused, ...] = ()
        self._was_there = False
        workers = spec.trainer.workers
        self._second = SecondLook(
            self._means.gone_on, workers=workers if workers > 1 else None, is_shared=self._names.is_shared
        )
        self._begun = 0
        self._known = known
        self._known_read = known is None
        self._clock, self._files_s = clock, files_s or clock
        self._blobs = Blobs(bucket, run_id, clock)
        self._reader = Reader(bucket, run_id)
        limit = spec.checkpoints.upload_mb_per_s_max
        self.uplink = uplink = Uplink(monotonic_s, bytes_per_s_max=limit * 1e6 if limit else None)
        cores = max(1, (os.cpu_count() or 1) // 2)
        self._sender = Sender(
            self._blobs, uplink, compress=spec.checkpoints.compress, monotonic_s=monotonic_s, cores=cores
        )
        self._policy = RetentionPolicy.of(spec.checkpoints)
        self._retention = Retention(
            bucket,
            self._blobs,
            run_id,
            policy=self._policy,
            pinned=known,
            clock=clock,
            deletions=self._means.deletions,
        )
        self._dropped = False
        self._best: int | None = None
        self._uploaded_steps: set[int] = set()
        self._newest_step = known.step if known else -1
        self._committed_step = -1
        self._violations: dict[str, str] = {}
        self._doubts: dict[str, str] = {}
        self._disregarded: dict[Path, float] = {}

    @property
    def uploaded_step(self) -> int | None:
        """The newest step that this attempt has uploaded or restored; None if there is none."""
        return self._newest_step if self._newest_step >= 0 else None

    def disregard_present(self) -> tuple[int, ...]:
        """Exclude the checkpoints that exist now from uploads unless they are written again, and return their
        steps.

        These checkpoints were not made by this attempt, for example if the working tree was copied with its
        old results. Call this once, before the trainer is started. Steps up to the restored one are not
        returned.
        """
        clear(self._stage)  # left by an earlier agent of this attempt
        with suppress(ExternalError):
            self._trust_known()  # if that fails now, the first upload does it
        self._gatherer.disregard_present()
        units = self._found()
        self._disregarded = {unit.path: unit.written_s for unit in units}
        return tuple(sorted(unit.step for unit in units if unit.step > self._newest_step))

    def scan(self, now_s: int) -> list[LocalCheckpoint]:
        """Return the newest checkpoint that is complete and not yet uploaded, as a list of at most one.

        Older ones are left out, so that a slow bucket never lets them pile up; they stay candidates in case
        the newest one vanishes. Only the one that the trainer calls its best follows once the newest is
        uploaded, because the trainer keeps that one, too. The content of the returned checkpoint is kept from
        now on, whatever the trainer does.
        """
        self._gatherer.gather(above=self._newest_step, resumed_step=self._known.step if self._known else 0)
        self._begun = next((unit.step for unit in self._newer()), 0)
        if self._names.is_fixed:
            self._take_version(now_s)
            is_again = any(one.is_again for one in self._held.values())
            waiting = self._waiting.newest(above=self._newest_step - is_again)
            return [self._as_held(waiting.step, waiting.path)] if waiting is not None else []
        if (again := self._changed(now_s)) is not None:
            return [again]
        waiting, newer = self._waiting.newest(above=self._newest_step), list(self._newer())
        names = {unit.name for unit in newer}
        self._violations = {name: why for name, why in self._violations.items() if name in names}
        for unit in newer:
            self._was_there = True
            if waiting is not None and unit.step < waiting.step:
                break
            found = self._if_complete(unit, now_s)
            if found is not None:
                waiting = self._waiting.hold(unit.step, unit) if not self._spec.checkpoints.in_place else None
                self._gatherer.drop(below=unit.step)
                self._held = {unit.step: found}
                return [self._as_held(unit.step, waiting.path) if waiting is not None else found]
        if waiting is not None:
            return [self._as_held(waiting.step, waiting.path)]
        best = self._best_left()
        return [best] if best is not None else []

    @property
    def owes_best(self) -> bool:
        """Whether the checkpoint that the trainer calls its best was passed over for a newer one. One that
        the trainer had before it resumed is in the bucket.
        """
        best = self._best
        return (
            best is not None
            and best not in self._uploaded_steps
            and best > (self._known.step if self._known else 0)
        )

    @property
    def owed_steps(self) -> tuple[int, ...]:
        """The steps below the newest uploaded one that are still to be uploaded, so that they stay on the
        disk however full it is.
        """
        return (self._best,) if self._best is not None and self.owes_best else ()

    def _best_left(self) -> LocalCheckpoint | None:
        """Return the trainer's best checkpoint if it was passed over and is still on this machine."""
        if not self.owes_best:
            return None
        unit = next((unit for unit in self._found() if unit.step == self._best), None)
        if unit is None or self._disregarded.get(unit.path) == unit.written_s:
            return None
        # The trainer has gone on, so nothing of it is still being written.
        local = self._if_complete(unit, self._files_s() + self._spec.checkpoints.settled_s + 1)
        return replace(local, is_again=True) if local is not None else None

    def _changed(self, now_s: int) -> LocalCheckpoint | None:
        """Return the checkpoint that was uploaded last if files of it were added or changed since, and the
        trainer has gone on.
        """
        if not self._second.is_due(self._begun) or self.waits_to_look:
            return None
        unit = next((unit for unit in self._found() if unit.step == self._second.watched_step), None)
        was_known = self._second.changes_late
        try:
            if not self._second.compare(unit, self._begun) or unit is None:
                return None
        except (OSError, PermanentError):
            return None
        if not was_known:
            _log.warning(
                "checkpoint %s was changed after it was complete; such checkpoints count once the trainer "
                "has gone on",
                unit.name,
            )
        # The trainer has gone on, so nothing that it left is still being written.
        local = self._if_complete(unit, now_s + self._spec.checkpoints.settled_s + 1)
        return replace(local, is_again=True) if local is not None else None

    @property
    def waits_to_look(self) -> bool:
        """Whether the checkpoint that was uploaded last must be compared with the disk once more, and cannot
        be before the control plane answers again, without which a manifest is not replaced.
        """
        return not self._names.is_fixed and self._second.is_due(self._begun) and not self._means.is_heard()

    @property
    def changes_late(self) -> bool:
        """Whether the trainer was seen to change checkpoints after they counted as complete."""
        return self._second.changes_late

    def _as_held(self, step: int, path: Path) -> LocalCheckpoint:
        """Return the checkpoint that is held at `path`."""
        return replace(self._held.get(step, LocalCheckpoint(step, path)), path=path, is_held=True)

    def _take_version(self, now_s: int) -> None:
        """Copy a checkpoint of a fixed name while nobody writes it, and hold the copy once it is known which
        step had been reached.
        """
        is_running = self._means.writers() is not None
        self._label_version(is_running=is_running)
        draft = self._versions.draft
        if draft is not None:
            if not self._repeats(self._means.reached(draft.written_s)) or not any(self._newer()):
                return
            self._versions.drop()
        for unit in self._newer():
            self._was_there = True
            if self._if_complete(unit, now_s) is None:
                continue
            try:
                self._versions.take(unit)
            except (Vanished, FileNotFoundError):
                continue  # it is being saved again
            except (TemporaryError, PermanentError, OSError) as error:
                self._violate(unit.name, str(error))
        self._label_version(is_running=is_running)

    def _label_version(self, *, is_running: bool) -> None:
        """Hold the version that was copied under its step, once every line that was printed before it has
        arrived.
        """
        draft = self._versions.draft
        if draft is None or (is_running and 0 <= self._means.now_s() - draft.written_s < LATE_S):
            return
        step = self._means.reached(draft.written_s)
        if self._repeats(step):
            return
        is_again = step == self._second.watched_step == self._newest_step
        waiting = self._waiting.newest(above=self._newest_step - is_again)
        if step < 1:
            self._violate(
                draft.unit.name,
                "the trainer had reported no step before it was saved, so its step is not known",
            )
        elif (step > self._newest_step or is_again) and (waiting is None or step >= waiting.step):
            path = self._waiting.adopt(step, draft.path).path
            self._violations.clear()
            place = self._units.place(draft.unit)
            self._held = {
                step: LocalCheckpoint(step, path, draft.unit, is_closed=True, place=place, is_again=is_again)
            }
        self._versions.drop()

    def _repeats(self, step: int) -> bool:
        """Return whether there is an earlier version of the same step. The later one replaces it once the
        trainer has ended in order: the last weights may be saved without another step, but a save that a
        crash cut off must not replace a whole one.
        """
        return step in (self._second.watched_step, *self._held) and not self._means.gone_on(step)

    def begun_step(self) -> int:
        """Return the newest step that the trainer has begun to save, complete or not, and that is not
        uploaded; 0 if there is none.
        """
        return next((unit.step for unit in self._newer() if unit.size and self._is_begun(unit)), 0)

    def units(self) -> frozenset[str]:
        """Return the names of all checkpoints that are there, complete or not, and of what belongs to one:
        its further files, and the pointers that were recognised beside it.
        """
        names = {name for unit in self._found() for name in (unit.name, *unit.members)}
        return frozenset(names | self._learned.keys() | {one.name for one in self._refused})

    def refusals(self, now_s: int, *, above: int) -> list[RefusedEntry]:
        """Return the checkpoints of steps above `above`, none of which is complete, newest first, with the
        reasons of the newest ones.
        """
        newer = [unit for unit in self._newer() if unit.step > above or unit.name in self._violations]
        read = [(unit, self._why_refused(unit, now_s)) for unit in newer[:REFUSALS_MAX]]
        found = [
            RefusedEntry(unit.name, unit.step, why, abs(now_s - unit.written_s))
            for unit, why in read
            if why is not None
        ]
        others = [RefusedEntry(unit.name, unit.step, "is not complete") for unit in newer[REFUSALS_MAX:]]
        no_units = [
            RefusedEntry(one.name, self._names.step_of(one.name) or 0, one.reason) for one in self._refused
        ]
        names = {unit.name for unit in newer}
        # The version of an overwritten file that could not be kept: its step is not known, but later than any
        # that was.
        lost = [
            RefusedEntry(name, above + 1, f"is not uploaded: {why}")
            for name, why in list(self._violations.items())
            if name not in names
        ]
        return [
            *found,
            *others,
            *(one for one in no_units if one.step > above),
            *(lost if self._names.is_fixed else []),
        ]

    def _why_refused(self, unit: Unit, now_s: int) -> str | None:
        """Return why the checkpoint is not uploaded as it is now, as the end of a sentence that begins with
        its name; None if it is complete.
        """
        if self._if_complete(unit, now_s) is not None:
            return None
        if unit.name in self._violations:
            return f"is not uploaded: {self._violations[unit.name]}"
        if unit.name in self._doubts:
            return f"{self._doubts[unit.name]}; it counts once the trainer has gone on"
        try:
            return why_incomplete(self._spec.checkpoints, unit.files(), now_s)
        except (PermanentError, OSError):
            return "is changing"

    def is_removed(self) -> bool:
        """Return whether this attempt had checkpoints, and their folder is now missing or empty."""
        return self._was_there and not self._found()

    def saving(self, now_s: int) -> bool:
        """Return whether the trainer is writing a checkpoint that is newer than the newest complete one."""
        for unit in self._newer():
            if self._if_complete(unit, now_s) is not None:
                return False
            if abs(now_s - unit.written_s) <= SAVING_QUIET_S and self._is_begun(unit):
                return True
        return False

    @property
    def sent(self) -> Sent:
        """Progress of the upload in progress, or the amounts of the last one."""
        return self._sender.sent

    def overtaken(self, step: int, newer: Iterable[int]) -> bool:
        """Return whether the upload of `step` should be dropped because a newer checkpoint is complete.

        True only if the policy would keep just the newer one and the upload has hardly begun, and never twice
        in a row, because otherwise a slow bucket would never get any checkpoint.
        """
        if (
            self._dropped
            or not any(other > step for other in newer)
            or not keeps_newest_only(self._policy, step)
        ):
            return False
        sent = self._sender.sent
        self._dropped = sent.bytes_done < BEGUN_SHARE_MAX * sent.bytes_total
        return self._dropped

    def fell_back(self, point: ResumePoint, damaged: Iterable[str]) -> None:
        """Record that the older checkpoint `point` was restored, because chunks with the digests `damaged`
        are damaged in the bucket; they will be uploaded again.
        """
        self._known, self._known_read = point, False
        self._newest_step = point.step
        self._blobs.distrust(damaged)

    def upload(
        self, local: LocalCheckpoint, *, cancelled: Callable[[], bool], metrics: Metrics = NO_METRICS
    ) -> Manifest:
        """Upload the checkpoint, its manifest last, and return the manifest. May be called again after a
        failure.

        Raises Vanished (the trainer deleted or changed the checkpoint meanwhile), Cancelled, TemporaryError
        or PermanentError. Then there is no manifest, or a correct one if only the response to its write was
        lost.
        """
        stage = self._stage / f"upload-{self._attempt}-{local.step}"
        try:
            manifest = self._upload(local, stage, cancelled, metrics)
        except FileNotFoundError as error:
            self._second.vanished(local.step)
            raise Vanished(f"{local.name} disappeared during its upload") from error
        except Vanished:
            self._second.vanished(local.step)
            raise
        except OSError as error:
            raise TemporaryError(f"step {local.step} cannot be read: {error.strerror or error}") from error
        finally:
            clear(stage)
        self._uploaded_steps.add(local.step)
        if local.step >= self._newest_step:
            self._best = manifest.best_step
        self._newest_step = max(self._newest_step, local.step)
        self._waiting.newest(above=self._newest_step)
        self._dropped = False
        return manifest

    def committed(self, manifest: Manifest, now_s: int) -> None:
        """Move `latest.json` forward and clean up after a commit that was confirmed at `now_s`. Raises the
        bucket's errors; the commit stays valid.
        """
        self._committed_step = max(self._committed_step, manifest.step)
        self._blobs.trust(manifest)
        move_latest(self._bucket, manifest, now_s)
        self._retention.prune(committed_step=self._committed_step, committed_s=now_s)

    def _upload(
        self, local: LocalCheckpoint, stage: Path, cancelled: Callable[[], bool], metrics: Metrics
    ) -> Manifest:
        self._trust_known()
        files_now = local.unit.files if local.unit is not None and not local.is_held else None
        files = set_aside(
            local.path, stage, copy=self._spec.checkpoints.in_place and not local.is_held, listed=files_now
        )
        violation = violation_of(stage, files)
        if violation or not (
            local.is_closed or self._trainer.is_complete(self._spec, files, self._files_s())
        ):
            raise Vanished(f"{local.name} is no longer complete{f': {violation}' if violation else ''}")
        _check_names(local.step, files)
        catalog = self._reader.catalog()
        self._second.know(catalog.manifests[:SHAPES_MAX])
        self._blobs.see(catalog)
        try:
            listed = self._sender.send(stage, files, cancelled=cancelled)
            if files_in(stage) != files:
                # Overwriting a file in place also changes our hard link to it, so the chunks may come from
                # two versions.
                raise Vanished(
                    "the trainer wrote into the checkpoint during its upload; set checkpoints.in_place"
                )
            manifest, data = self._manifest(local, listed, metrics, self._best_step(stage))
            self._must_be_there(manifest)
            if cancelled():
                raise Cancelled("the upload was cancelled")
            if local.is_again and not self._means.is_heard():
                # An attempt that was replaced may already have chosen the manifest that would be overwritten.
                raise TemporaryError(
                    f"the control plane does not answer, so the manifest of step {local.step} is not "
                    "replaced now"
                )
            self._write(manifest.key, data)
        finally:
            self._blobs.release()
        if local.step >= self._newest_step:
            self._second.uploaded(manifest, files, self._begun)
        self._blobs.named(manifest)
        return manifest

    def confirm(self, manifest: Manifest) -> None:
        """Write the manifest again if the bucket has lost it. Raises TemporaryError if that does not help,
        and the bucket's errors.
        """
        data = manifest.to_json()
        if not self._has(manifest.key, data):
            self._write(manifest.key, data)

    def _write(self, key: str, data: bytes) -> None:
        """Write the manifest and read it back, because a bucket may acknowledge an object and lose it, and a
        checkpoint without its manifest is none. Raises TemporaryError if the bucket does not keep it.
        """
        for _ in range(MANIFEST_WRITES_MAX):
            self._bucket.put(key, data)
            if self._has(key, data):
                return
        raise TemporaryError(
            f"the bucket acknowledged {key} {MANIFEST_WRITES_MAX} times, but does not have it"
        )

    def _has(self, key: str, data: bytes) -> bool:
        content = self._bucket.get(key)
        return content is not None and content.data == data

    def _must_be_there(self, manifest: Manifest) -> None:
        """Check, before the manifest is written, that the bucket lists every blob with its size. Raises
        TemporaryError if one is missing.
        """
        missing = self._reader.catalog().missing(manifest)
        if missing:
            self._blobs.forget(missing)
            raise TemporaryError(
                f"{missing[0]} and {len(missing) - 1} more blobs in the bucket differ from what was sent"
            )

    def _best_step(self, stage: Path) -> int | None:
        """Return the step of the best checkpoint so far by the trainer's own account in the checkpoint that
        is being uploaded.
        """
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
                folder=local.name,
                files=files,
                unit="folder" if local.is_folder else "files",
                place=local.place,
                pointers=local.pointers,
                fresh_below=self._means.fresh_below(),
                progress_header=self._means.header(),
                loss=metrics.loss,
                reward=metrics.reward,
                finite=metrics.finite,
                not_finite_since=metrics.not_finite_since,
                learning_rate=metrics.learning_rate,
                best_step=best_step,
                changes_late=self._second.changes_late,
                seen_whole=self._second.is_over(local.step, self._begun),
                identity=self._identity,
            )
            data = manifest.to_json()
        except ValueError as error:
            raise PermanentError(
                f"step {local.step} cannot be listed in a manifest: {str(error)[:300]}"
            ) from error
        if len(data) > MANIFEST_BYTES_MAX:
            raise PermanentError(
                f"step {local.step}: the manifest of {len(files)} files has {len(data)} bytes, more than "
                f"{MANIFEST_BYTES_MAX}"
            )
        return manifest, data

    def on_disk(self, step: int) -> LocalCheckpoint | None:
        """Return the complete checkpoint of `step` as it lies on this machine, to be uploaded again; None if
        it is gone or incomplete.
        """
        unit = next((unit for unit in self._found() if unit.step == step), None)
        local = (
            self._if_complete(unit, self._files_s())
            if unit is not None and not self._names.is_fixed
            else None
        )
        return replace(local, is_again=True) if local is not None else None

    def verification(self, stopped: threading.Event, monotonic_s: Callable[[], float]) -> Verification:
        """Return the verification of what this attempt has in the bucket."""
        rate = self._spec.checkpoints.verify_mb_per_s * 1e6
        return Verification(
            self._bucket,
            self._blobs,
            roots=self._roots_of,
            bytes_per_s=rate,
            stopped=stopped,
            monotonic_s=monotonic_s,
        )

    def _roots_of(self, manifest: Manifest) -> Iterator[Path]:
        """Yield the folders that the files of this checkpoint, or of others that share content with it, may
        be in.
        """
        units = sorted(
            self._units.found()[0], key=lambda unit: (unit.step == manifest.step, unit.step), reverse=True
        )
        yield from dict.fromkeys(unit.root for unit in units)
        waiting = self._waiting.newest(above=-1)
        if waiting is not None:
            yield waiting.path

    def _trust_known(self) -> None:
        """Trust the blobs of the checkpoint that the attempt resumed from: they were verified byte by byte
        and need not be uploaded again.
        """
        if self._known_read or self._known is None:
            return
        manifest = read_manifest(self._bucket, self._known.key)
        if manifest is not None:
            self._blobs.trust(manifest)
            self._second.know((manifest,))
            self._learned = {pointer.name: pointer for pointer in manifest.pointers} | self._learned
        self._known_read = True

    def _newer(self) -> Iterator[Unit]:
        """Yield the checkpoints newer than everything uploaded or restored, newest first; of an overwritten
        file also a later version of the step that this attempt uploaded last.
        """
        for unit in sorted(self._found(), key=lambda unit: unit.step, reverse=True):
            written_s = unit.written_s
            is_taken = self._names.is_fixed and written_s == self._versions.taken_s
            is_newer = unit.step > self._newest_step or (
                self._names.is_fixed and unit.step == self._second.watched_step
            )
            if is_newer and self._disregarded.get(unit.path) != written_s and not is_taken:
                yield unit

    def _found(self) -> list[Unit]:
        units, refused = self._units.found()
        for one in set(refused) - set(self._refused):
            _log.warning("%s is not uploaded: %s", one.name, one.reason)
        self._refused = tuple(refused)
        return units

    def _is_begun(self, unit: Unit) -> bool:
        try:
            return self._trainer.is_begun(self._spec, unit.files())
        except (OSError, PermanentError):
            return True  # the folder is changing or cannot be read, so assume a save in progress

    def _if_complete(self, unit: Unit, now_s: int) -> LocalCheckpoint | None:
        """Return the checkpoint if it is complete, otherwise None; what keeps it from being uploaded is
        remembered.
        """
        is_closed = False
        pointers: tuple[Pointer, ...] = ()
        try:
            files = unit.files()
            is_settled = self._trainer.is_complete(self._spec, files, now_s)
            is_closed = not is_settled and (self._is_closed(unit, files) or self._is_pointed_at(unit, files))
            if not is_settled and not is_closed:
                return None
            violation = (
                f"no file {unit.missing[0]} with its number is beside it"
                if unit.missing
                else violation_of(unit.root, files)
            )
            if violation is None and (doubt := self._second.doubt(unit.step, files, self._begun)):
                if self._doubts.get(unit.name) != doubt:
                    self._doubts[unit.name] = doubt
                    _log.info(
                        "checkpoint %s counts as complete once the trainer has gone on: it %s",
                        unit.name,
                        doubt,
                    )
                return None
            if violation is None:
                pointers = self._pointers(unit, files)
        except FileNotFoundError:
            return None
        except PermanentError as error:
            violation = str(error)
        except OSError as error:
            violation = f"the checkpoint cannot be read: {error.strerror or error}"
        if violation is not None:
            self._violate(unit.name, violation)
            return None
        self._violations.pop(unit.name, None)
        self._doubts.pop(unit.name, None)
        return LocalCheckpoint(unit.step, unit.root, unit, is_closed, self._units.place(unit), pointers)

    def _violate(self, name: str, violation: str) -> None:
        if self._violations.get(name) != violation:
            self._violations[name] = violation
            _log.warning("checkpoint %s is not uploaded: %s", name, violation)

    def _is_closed(self, unit: Unit, files: tuple[FileInfo, ...]) -> bool:
        """Return whether a checkpoint of files is complete although not settled: nobody has one of them, or a
        copy that is being made of one, open for writing.

        A single file of a fixed name counts at once, because the next save overwrites it; of several, only
        settled ones belong together.
        """
        checkpoints = self._spec.checkpoints
        is_single = self._names.is_fixed and len(files) == 1
        if (
            not unit.members
            or unit.missing
            or checkpoints.sentinel is not None
            or (self._names.is_fixed and not is_single)
        ):
            return False
        if not files or not {*checkpoints.files} <= {file.path for file in files}:
            return False
        if not is_single and 0 <= self._means.now_s() - max(file.mtime_s for file in files) < QUIET_S:
            return False
        written = self._means.writers()
        if written is None:
            return False
        endings = {path.suffix for file in files if (path := unit.root / file.path)}
        beside = (
            []
            if is_single
            else [path for path in unit.folder.iterdir() if path.suffix in endings and path.is_file()]
        )
        return not any(
            _identity(path) in written for path in (*beside, *(unit.root / file.path for file in files))
        )

    def _is_pointed_at(self, unit: Unit, files: tuple[FileInfo, ...]) -> bool:
        """Return whether a folder is complete although not settled and without a sentinel: what the trainer
        writes last names it, and nobody writes into it.
        """
        checkpoints, kind = self._spec.checkpoints, TRAINERS[self._spec.trainer.kind]
        if (
            unit.members
            or checkpoints.sentinel is not None
            or kind.layout is not None
            or not shards_complete(files)
        ):
            return False
        if not {*checkpoints.files} <= {file.path for file in files}:
            return False
        if 0 <= self._means.now_s() - max((file.mtime_s for file in files), default=0) < QUIET_S:
            return False
        if not is_pointed_at(unit, files, self._names, work=self._work):
            return False
        written = self._means.writers()
        return written is not None and not any(_identity(unit.root / file.path) in written for file in files)

    def _pointers(self, unit: Unit, files: tuple[FileInfo, ...]) -> tuple[Pointer, ...]:
        if self._names.is_fixed or self._trainer.gathering(self._spec) is not None:
            return ()
        key = (unit.path, unit.written_s)
        if self._pointed[0] == key:
            return self._pointed[1]
        present = {
            number
            for path in unit.folder.iterdir()
            if (number := self._names.number_in(path.name)) is not None
        }
        found = pointers_of(unit, files, self._names, work=self._work, present=present, learned=self._learned)
        self._learned |= {pointer.name: pointer for pointer in found}
        self._pointed = key, found
        return found


def _identity(path: Path) -> Identity:
    status = path.stat()
    return status.st_dev, status.st_ino


def _check_names(step: int, files: tuple[FileInfo, ...]) -> None:
    """Check the names before anything is sent. Raises PermanentError for a name that a manifest cannot
    hold.
    """
    try:
        for file in files:
            ManifestFile(path=file.path, size=0)
    except ValueError as error:
        raise PermanentError(f"step {step} cannot be listed in a manifest: {str(error)[:300]}") from error
