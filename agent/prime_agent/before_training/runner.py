"""Runs the phases before training, each in a background thread, one at a time."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prime_agent.before_training.by_version import installed_versions, variables_by_version
from prime_agent.before_training.code_snapshot import clone, unpack
from prime_agent.before_training.image_environment import is_described, provide
from prime_agent.before_training.own_python import OwnPython, give_python
from prime_agent.before_training.phase import Called, CallOff, PhaseError, Shell
from prime_agent.before_training.preflight import preflight, shm_bytes, shm_warning
from prime_agent.before_training.setup import set_up
from prime_agent.before_training.speeds import slow_disk, slow_download
from prime_agent.before_training.trainer_checks import check_all_reduce, check_services, smoke, verify
from prime_agent.checkpoints.integrity import violation_of
from prime_agent.event_queue import Inbox
from prime_agent.events import Event, FellBack, Noted, PhaseDone, PhaseFailed, Restored
from prime_agent.gpu.cuda_contexts import make_contexts
from prime_agent.gpu.reading import GpuReader
from prime_agent.outputs.restore import restore_outputs, resume_outputs
from prime_agent.processes import Processes
from prime_agent.trainer.environment import without_secrets
from prime_agent.trainer.stale_outputs import moved_aside
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.pointers import write_pointers
from prime_train.checkpoints.restore import (
    OLDER_TRIED_MAX,
    CheckpointDamaged,
    RestoreFailed,
    discard,
    names_any,
    older,
    read_manifest,
    remove,
    restore,
    root_of,
)
from prime_train.errors import ExternalError, PermanentError
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Bootstrap, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.checkpoint_names import CheckpointNames, counts_epochs, has_wildcards, is_place
from prime_train.spec.spec import RunSpec
from prime_train.text.formatting import size
from prime_train.trainers.cuda_versions import driver_warning
from prime_train.trainers.log_rules import patterns_of
from prime_train.trainers.of_spec import FileInfo, trainer_for
from prime_train.trainers.patterns import load_engine, refusals

RESTORE_TRIES_MAX = 5
RESTORE_RETRY_S = 3.0
MEASURED_BYTES_MIN = 256 * 2**20
"""Size from which on the time of a restore tells the speed of network and disk."""
RESTORE_BYTES_PER_S_MIN = 20e6
"""Speed of a restore below which it is warned about; machines for rent have networks of at least 1 Gbit/s,
which is 125e6.
"""
LONG_AFTER_S = 2**40
"""Seconds since 1970 far in the future, so that the files of a restored checkpoint count as settled."""

_log = logging.getLogger(__name__)

CAUSES: dict[Phase, Cause] = {
    Phase.PREFLIGHT: Cause.PREFLIGHT_FAILED,
    Phase.SETUP: Cause.SETUP_FAILED,
    Phase.VERIFY: Cause.VERIFY_FAILED,
    Phase.SMOKE: Cause.SMOKE_FAILED,
    Phase.RESTORE: Cause.RESTORE_FAILED,
}


@dataclass(frozen=True)
class AttemptFolders:
    """The folders of one attempt on the machine's disk."""

    disk: Path

    @property
    def work(self) -> Path:
        return self.disk / "work"

    @property
    def stage(self) -> Path:
        return self.disk / "stage"

    @property
    def logs(self) -> Path:
        return self.disk / "logs"

    @property
    def python(self) -> Path:
        """Return the folder of the attempt's own Python environment, if it needs one."""
        return self.disk / "python"


@dataclass(frozen=True)
class PhaseContext:
    """The interfaces and values that the phases use."""

    job: Bootstrap
    place: AttemptFolders
    bucket: Bucket
    processes: Processes
    gpus: GpuReader
    env: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)
    """Values to redact, keyed by the names that replace them."""


class Phases:
    """Runner of the phases. `run` returns at once; the result arrives as PhaseDone or PhaseFailed, and a
    cancelled phase reports nothing.
    """

    def __init__(self, context: PhaseContext, inbox: Inbox) -> None:
        self._context = context
        self._inbox = inbox
        self._call_off = CallOff()
        self.restored: Path | None = None
        self.progress_header = ""
        self._restored_step = 0
        self._cuda: tuple[int, ...] = ()
        """Newest CUDA version that the driver supports; (): unknown."""
        self.by_version: Mapping[str, str] = {}
        """Variables for the versions of the libraries that the setup has installed; everything else that is
        set has precedence.
        """
        self._python = OwnPython({}, "")

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands, as far as the phases have prepared it."""
        return {**self.by_version, **self._context.env, **self._python.variables}

    @property
    def python(self) -> str:
        """Return which Python environment the commands have, for people; empty before the setup."""
        return self._python.why

    def run(self, phase: Phase) -> None:
        def report() -> None:
            if (event := self._outcome(phase)) is not None:
                self._inbox.put(event)

        threading.Thread(target=report, name=phase.value, daemon=True).start()

    def call_off(self) -> None:
        """Cancel the running phase, and every later one."""
        self._call_off.now()

    def _outcome(self, phase: Phase) -> Event | None:
        try:
            self._work(phase)
        except Called:
            return None
        except PhaseError as error:
            return self._failed(phase, error.cause, error.detail, error.log_tail)
        except OSError as error:
            return self._failed(phase, CAUSES[phase], f"{phase.value}: {error}")
        except Exception as error:
            _log.exception("%s failed", phase.value)
            return self._failed(phase, Cause.AGENT_ERROR, f"{phase.value}: {type(error).__name__}: {error}")
        return PhaseDone(phase)

    def _failed(self, phase: Phase, cause: Cause, detail: str, tail: str = "") -> PhaseFailed:
        return PhaseFailed(phase, cause, self._redacted(detail), self._redacted(tail))

    def _redacted(self, text: str) -> str:
        return without_secrets(text, self._context.secrets)

    def _work(self, phase: Phase) -> None:
        spec, place = self._context.job.spec, self._context.place
        match phase:
            case Phase.PREFLIGHT:
                load_engine()
                for pattern, why in refusals(patterns_of(spec)):
                    raise PhaseError(
                        Cause.BAD_CONFIG,
                        f"the pattern {pattern[:100]!r} cannot be matched in linear time: {why[:200]}",
                    )
                self._cuda = preflight(spec.hardware, place.disk, self._context.gpus, make_contexts).cuda
                self._warn(shm_warning(spec, shm_bytes()))
                # Before anything is downloaded for long.
                self._raise(Cause.SLOW_DISK, slow_disk(spec.hardware, place.disk))
                if (point := self._context.job.resume) is not None:
                    fault = slow_download(spec.hardware, self._context.bucket, self._context.job.run, point)
                    self._raise(Cause.SLOW_DOWNLOAD, fault)
            case Phase.SETUP:
                self._set_up(spec)
            case Phase.VERIFY:
                verify(spec.verification, place.work)
            case Phase.SMOKE:
                if spec.smoke is not None:
                    smoke(spec, spec.smoke, self._shell("smoke.log"))
            case Phase.RESTORE:
                self._restore_checkpoint()
                if self._context.job.trained:
                    self._restore_outputs()
                elif self.restored is not None:
                    self._resume_outputs()
            case Phase.TRAIN | Phase.FLUSH | Phase.AFTER | Phase.EXITED:
                raise ValueError(f"{phase.value} is not a phase of this kind")

    def _raise(self, cause: Cause, fault: str) -> None:
        if self._call_off():
            raise Called
        if fault:
            raise PhaseError(cause, fault)

    def _set_up(self, spec: RunSpec) -> None:
        job, shell = self._context.job, self._shell("setup.log")
        if job.code_key is not None:
            self._note("downloading the working tree")
            unpack(self._context.bucket, job.code_key, shell.cwd, shell, sha256=job.code_sha256)
        else:
            self._note(f"cloning {spec.trainer.code.repo}")
            clone(spec.trainer.code, job.commit, shell.cwd, shell)
        if spec.image is None or not spec.image.requirements:
            self._python = give_python(shell, self._context.place.python, note=self._note)
            _log.info("%s", self._python.why)
            shell = self._shell("setup.log")
        if spec.image is not None and is_described(spec.image):
            provide(spec.image, shell, timeout_s=spec.health.first_step_s, note=self._note)
        set_up(
            (*trainer_for(spec).setup(spec), *spec.setup),
            shell,
            timeout_s=spec.health.first_step_s,
            note=self._note,
        )
        if spec.hardware.gpus:
            installed = installed_versions(shell)
            self._warn(driver_warning(installed, self._cuda))
            self.by_version = variables_by_version(spec, installed, shell, self._context.gpus)
            if spec.hardware.count > 1:
                self._note(f"adding up a tensor over {spec.hardware.count} GPUs")
                _log.info("%s", self._redacted(check_all_reduce(spec, self._shell("setup.log"))))
            _log.info(
                "%s",
                self._redacted(
                    check_services(spec, self._shell("setup.log"))
                    or "the run has no services beside its trainer"
                ),
            )

    def _resume_outputs(self) -> None:
        """Restore the outputs to which the trainer may append. Training goes on without what cannot be
        restored, because nothing of it is lost: it stays in the bucket.
        """
        context, spec = self._context, self._context.job.spec
        stale = trainer_for(spec).stale_outputs(spec)
        step, attempt = self._restored_step, context.job.attempt
        epoch = step + spec.trainer.progress.first - 1 if counts_epochs(spec) else None

        def left_out(paths: Collection[str]) -> Collection[str]:
            return moved_aside(stale, paths, step, attempt=attempt) if stale is not None else ()

        try:
            found = resume_outputs(
                context.bucket,
                context.job.run,
                context.place.work,
                lambda: self._call_off.wait(0),
                step=step,
                epoch=epoch,
                attempt=attempt,
                left_out=left_out,
            )
        except (RestoreFailed, ExternalError) as error:
            self._warn(f"outputs of earlier attempts were not restored: {error}")
        except Exception as error:  # what a trainer left must not end every attempt that comes after it
            _log.exception("outputs of earlier attempts were not restored")
            self._warn(
                "outputs of earlier attempts were not restored, by a bug of prime-train: "
                f"{type(error).__name__}"
            )
        else:
            _log.info("restored %d outputs of earlier attempts", len(found))

    def _restore_outputs(self) -> None:
        """Restore what the training and the steps after it left, for the steps that are left to do."""
        context = self._context
        try:
            restore_outputs(
                context.bucket, context.job.run, context.place.work, lambda: self._call_off.wait(0)
            )
        except RestoreFailed as error:
            raise PhaseError(Cause.RESTORE_FAILED, str(error)) from error
        except ExternalError as error:
            raise PhaseError(
                Cause.RESTORE_FAILED, f"outputs of earlier attempts cannot be downloaded: {error}"
            ) from error

    def _restore_checkpoint(self) -> None:
        point = self._context.job.resume
        if point is None:
            return
        for attempt in range(1, RESTORE_TRIES_MAX + 1):
            try:
                self.restored = self._restore_or_older(point)
            except RestoreFailed as error:
                raise PhaseError(Cause.RESTORE_FAILED, str(error)) from error
            except ExternalError as error:
                if attempt == RESTORE_TRIES_MAX or isinstance(error, PermanentError):
                    raise PhaseError(
                        Cause.RESTORE_FAILED,
                        f"the checkpoint of step {point.step} cannot be downloaded: {error}",
                    ) from error
                self._call_off.wait(RESTORE_RETRY_S * attempt)
            else:
                return

    def _restore_or_older(self, point: ResumePoint) -> Path:
        """Restore the requested checkpoint or, if it is damaged, the newest older one that is intact."""
        try:
            return self._restore_once(point)
        except CheckpointDamaged as first:
            _log.error("%s", first)
            damaged = set(first.digests)
            self._discard(point)
            return self._restore_older(point, first, damaged)

    def _restore_older(self, point: ResumePoint, first: CheckpointDamaged, damaged: set[str]) -> Path:
        """Restore the newest older checkpoint that is intact; those that contain a chunk in `damaged` are
        not. Raises PhaseError if every one is damaged: no other machine could restore any of them.
        """
        tried = 0
        catalog = Reader(self._context.bucket, self._context.job.run).catalog()
        for manifest in older(catalog, point, attempt=self._context.job.attempt):
            if names_any(manifest, damaged):
                continue
            if tried == OLDER_TRIED_MAX:
                raise first
            tried, other = tried + 1, manifest.point
            try:
                folder = self._restore_once(other)
            except CheckpointDamaged as error:
                _log.error("%s", error)
                damaged |= error.digests
                self._discard(other)
            else:
                self._inbox.put(FellBack(other, point.step, frozenset(damaged), str(first)))
                return folder
        if not damaged:
            raise first  # the manifest is missing or names another folder, so the control plane chooses anew
        raise PhaseError(
            Cause.CHECKPOINTS_DAMAGED, f"{first}; every older checkpoint is damaged too, or there is none"
        )

    def _restore_once(self, point: ResumePoint) -> Path:
        progress = _percent(point.step, self._note, self._call_off)
        job, began_s = self._context.job, time.monotonic()
        manifest, names = read_manifest(self._context.bucket, job.run, point), CheckpointNames.of(job.spec)
        into = self._place_of(manifest, names)
        path = restore(
            self._context.bucket, job.run, point, into, names=names, is_own=True, progress=progress
        )
        self._warn(slow_restore(manifest.size, time.monotonic() - began_s))
        violation = self._violation(root_of(manifest, into), manifest)
        if violation is not None:
            remove(manifest, into)
            raise CheckpointDamaged(
                f"the checkpoint of step {point.step} was incomplete when it was saved: {violation}"
            )
        number, work = names.number(manifest.step), self._context.place.work
        written = write_pointers(manifest, into, number=number, tree=work.absolute(), replace=True)
        if written:
            _log.info("wrote what the trainer finds the checkpoint by: %s", ", ".join(written))
        self._inbox.put(Restored(manifest.fresh_below))
        self.progress_header = manifest.progress_header
        self._restored_step = point.step
        return path

    def _place_of(self, manifest: Manifest, names: CheckpointNames) -> Path:
        """Return the folder into which the checkpoint is restored. Raises RestoreFailed if the manifest names
        none that the config's wildcards stand for.
        """
        work = self._context.place.work
        if not has_wildcards(names.folder):
            return work / names.folder
        if not is_place(names.folder, manifest.place):
            raise RestoreFailed(
                f"step {manifest.step} was in the folder {manifest.place!r}, which is not one of "
                f"{names.folder}"
            )
        return work / manifest.place

    def _violation(self, root: Path, manifest: Manifest) -> str | None:
        """Return why a restored checkpoint is incomplete, or None.

        Every byte matches the manifest already; the indexes in the files and the trainer's rules show whether
        the checkpoint was complete when it was saved.
        """
        spec = self._context.job.spec
        files = [FileInfo(file.path, file.size, float(file.mtime_s)) for file in manifest.files]
        if not trainer_for(spec).is_complete(spec, files, LONG_AFTER_S):
            return "a file that the trainer needs is missing"
        return violation_of(root, files)

    def _discard(self, point: ResumePoint) -> None:
        """Free the disk space of a restore that found damage."""
        work, names = self._context.place.work, CheckpointNames.of(self._context.job.spec)
        folders = work.glob(names.folder) if has_wildcards(names.folder) else [work / names.folder]
        for folder in folders:
            discard(folder, point)

    def _shell(self, log: str) -> Shell:
        place = self._context.place
        place.work.mkdir(parents=True, exist_ok=True)
        return Shell(
            self._context.processes,
            place.work,
            self.environment,
            place.logs / log,
            self._call_off,
            self._context.secrets,
        )

    def _warn(self, text: str) -> None:
        if text:
            _log.warning("%s", text)
            self._note(text)

    def _note(self, text: str) -> None:
        self._inbox.put(Noted(self._redacted(text)))


def slow_restore(size_bytes: int, took_s: float) -> str:
    """Log how fast a checkpoint was downloaded and written, and return a warning if that was slow; "" if it
    was not, or if the checkpoint is too small to tell.
    """
    speed = size_bytes / max(took_s, 0.001)
    text = f"the checkpoint of {size(size_bytes)} was downloaded and written at {speed / 1e6:.0f} MB/s"
    _log.info("%s", text)
    if size_bytes < MEASURED_BYTES_MIN or speed >= RESTORE_BYTES_PER_S_MIN:
        return ""
    return (
        f"{text}: the machine's network or disk is slow, so checkpoints take long; leave such offers "
        "out if it is so again"
    )


def _percent(step: int, note: Callable[[str], None], called_off: CallOff) -> Callable[[int, int], None]:
    """Return a progress callback that notes each percent once. The callback raises Called if the phase is
    cancelled.
    """
    last_percent = -1

    def progress(done: int, total: int) -> None:
        nonlocal last_percent
        if called_off():
            raise Called
        percent = 100 if total == 0 else 100 * done // total
        if percent > last_percent:
            last_percent = percent
            note(f"restoring step {step}: {percent} %")

    return progress
