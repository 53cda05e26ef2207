"""Start a run from a checkpoint of another run. No content is copied: the new run gets a manifest that refers
to that of the other.

From then on nobody may delete that content, so the order matters. First a record in the other run's folder
says what the new run uses; only then is it checked that all of it still exists. `checkpoints.prune` does the
opposite.
"""

import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.buckets.attempt_policy import PolicyScope, session_policy
from prime_train.buckets.keys import blob_prefix, descendant_key, spec_key
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import read_manifest
from prime_train.checkpoints.descendants import spec_json
from prime_train.checkpoints.lookup import Found, look, newest, of_step
from prime_train.checkpoints.manifest import Manifest, missing_blobs
from prime_train.environment import ROLE
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.runs.run import Ancestor, Lineage, Run
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.spec.spec import RunSpec
from prime_train.text.formatting import size
from prime_train.trainers.of_spec import FileInfo, trainer_for
from prime_train.trainers.registry import TRAINERS

LONG_AFTER_S = 2**40
"""Seconds since 1970 far in the future, so that the files of a checkpoint count as settled."""
ATTEMPTS_CHECKED = 9999
"""The number of an attempt up to which keys can certainly be issued."""
SHORTER = Advice("use a shorter name: ", Option(SettingAdvice.NAME, "NAME"))
_STEP = re.compile(r"[0-9]{1,12}")
_MODEL_KEYS = frozenset(
    (
        "model",
        "model_name",
        "model_name_or_path",
        "model.name",
        "model.path",
        "model.flavor",
        "base_model",
        "actor.path",
        "actor_rollout_ref.model.path",
    )
)
"""Settings of trainers that name the model, with underscores."""


@dataclass(frozen=True)
class Start:
    """A checkpoint from which a run can start. `manifest`: that of the source; `spec`: the source's, None if
    it cannot be read; `gpus`: the number of GPUs of the machine that saved it, None if it is not known.
    """

    manifest: Manifest
    lineage: Lineage
    spec: RunSpec | None
    gpus: int | None

    @property
    def text(self) -> str:
        return f"{self.lineage.text} ({size(self.manifest.size)}, not copied)"


def start_of(home: Home, name: str) -> Start:
    """Return the checkpoint that `name` stands for, which is RUN or RUN@STEP: of the run, found as
    everywhere, the newest complete checkpoint or that of the step. Changes nothing. Raises UsageError if
    there is none, and ExternalError if the store or the bucket fails.
    """
    run_name, at, step = name.partition("@")
    if not run_name or (at and not _STEP.fullmatch(step)):
        raise UsageError(
            f"{name[:80]!r} is not a run or RUN@STEP",
            fix="write for example sft-x7k2p@200, or sft-x7k2p for its newest step",
        )
    found = look(home.stored_runs(), run_name)
    manifest = _complete(found, int(step)) if at else newest(found)
    spec, earlier = found.launched
    ancestors = (Ancestor(found.run_id, manifest.step), *(earlier.ancestors if earlier is not None else ()))
    return Start(manifest, Lineage(ancestors, manifest.holder), spec, _gpus_of(found, manifest, spec))


def check_start(start: Start, spec: RunSpec) -> None:
    """Raise UsageError if a run with this spec cannot continue from the checkpoint: its trainer would fail on
    a rented machine, or start over from step 0 without notice.
    """
    for problem, fix in _problems(start, spec):
        raise UsageError(
            f"{spec.name} cannot start from step {start.manifest.step} of {start.manifest.run}: {problem}",
            fix=fix,
        )


def hold(bucket: Bucket, theirs: Manifest, run_id: str) -> Manifest:
    """Make the checkpoint the first one of the run `run_id`, which does not exist yet, and return its
    manifest there. Raises UsageError if the checkpoint has been deleted since it was looked up, and
    ExternalError if the bucket fails; a later clean-up finds what is then left.
    """
    manifest = theirs.for_descendant(run_id)
    data = manifest.to_json()
    record = descendant_key(manifest.holder, run_id, manifest.step)
    bucket.put(record, data)
    still = read_manifest(bucket, theirs.key)
    sizes = {stat.key: stat.size for stat in bucket.list(blob_prefix(manifest.holder))}
    if still is None or still.digest != theirs.digest or missing_blobs(manifest, sizes):
        bucket.delete(record)
        fix = Advice("choose another one: ", Call(Operation.CHECKPOINTS, theirs.run))
        raise UsageError(
            f"step {theirs.step} of {theirs.run} has just been deleted", fix=fix, code=Exit.EXTERNAL_FAILED
        )
    bucket.put(manifest.key, data)
    return manifest


def check_keys(home: Home, start: Start, run_id: str) -> None:
    """Raise UsageError if machines get temporary keys, or may get them from a control plane elsewhere, and
    the names of the two runs are so long that AWS would not issue keys for both.
    """
    parts = urlsplit(home.bucket_url)
    if parts.scheme != "s3" or not (home.environment.get(ROLE) or home.elsewhere):
        return
    try:
        session_policy(
            PolicyScope(parts.netloc, parts.path.strip("/")), run_id, ATTEMPTS_CHECKED, start.lineage.blobs_of
        )
    except ValueError as error:
        raise UsageError(
            f"machines of {run_id} could not get keys to {start.lineage.blobs_of}: {error}", fix=SHORTER
        ) from error


def started(home: Home, run: Run, start: Start) -> Run:
    """Return the new run, not stored yet, as it starts from the checkpoint, which is held for it. Its steps
    continue from there. Raises as `check_keys` and `hold`.
    """
    check_keys(home, start, run.run_id)
    manifest = hold(home.bucket(), start.manifest, run.run_id)
    step = manifest.step
    started = replace(run, resume=manifest.point, best_step=step, durable_step=step, lineage=start.lineage)
    home.bucket().put(spec_key(run.run_id), spec_json(started))
    return started


def _complete(found: Found, step: int) -> Manifest:
    manifest = of_step(found, step)
    missing = found.catalog.missing(manifest)
    if not missing:
        return manifest
    steps = sorted({other.step for other in found.catalog.complete()})
    fix = (
        f"the complete ones are of steps {', '.join(map(str, steps))}"
        if steps
        else "it has no complete checkpoint"
    )
    raise UsageError(
        f"step {step} of {found.run_id} is incomplete: {len(missing)} of its chunks are not in the bucket",
        fix=fix,
    )


def _gpus_of(found: Found, manifest: Manifest, spec: RunSpec | None) -> int | None:
    """Return the number of GPUs of the machine that saved the checkpoint, or the only number that the spec
    allows; None if unknown.
    """
    attempts = found.record.run.attempts if found.record is not None else ()
    offers = [attempt.offer for attempt in attempts if attempt.number == manifest.attempt]
    if offers:
        return offers[0].gpu_count
    counts = _gpu_counts(spec) if spec is not None else set()
    return counts.pop() if len(counts) == 1 else None


def _gpu_counts(spec: RunSpec) -> set[int]:
    """Return the numbers of GPUs that a machine of this spec may have; empty if it can have any."""
    hardware = spec.hardware
    return {variant.count for variant in hardware.variants} or ({hardware.count} if hardware.gpus else set())


def _problems(start: Start, spec: RunSpec) -> Iterator[tuple[str, str]]:
    """Yield each reason against starting from the checkpoint, with a remedy."""
    manifest, theirs, kind = start.manifest, start.spec, spec.trainer.kind
    if theirs is not None and theirs.trainer.kind != kind:
        other = theirs.trainer.kind
        yield (
            f"it was saved by a trainer of kind {other}, and the config has kind {kind}",
            f"write trainer.kind: {other}",
        )
    trainer = trainer_for(spec)
    names, expected = CheckpointNames.of(spec), trainer.folder_of(spec, manifest.step)
    if not names.names(manifest.folder, manifest.step):
        fix = (
            f"write checkpoints.pattern: {theirs.checkpoints.pattern}"
            if theirs is not None
            else "set checkpoints.pattern as there"
        )
        yield f"its folder is {manifest.folder}, and the trainer would look for {expected}", fix
    counts = _gpu_counts(spec)
    if not TRAINERS[kind].restores_any_count and start.gpus is not None and counts - {start.gpus}:
        wanted = " or ".join(str(count) for count in sorted(counts))
        message = (
            f"it was saved on {start.gpus} GPUs, the config wants {wanted}, and kind {kind} "
            "restores it only on the same number"
        )
        yield message, f"write hardware.count: {start.gpus}"
    files = [FileInfo(file.path, file.size, float(file.mtime_s)) for file in manifest.files]
    if not trainer.is_complete(spec, files, LONG_AFTER_S):
        yield (
            f"it lacks a file that a checkpoint of this config has (kind {kind}, checkpoints.sentinel)",
            "write checkpoints.files and checkpoints.sentinel as there",
        )
    if spec.trainer.steps is not None and spec.trainer.steps <= manifest.step:
        message = (
            f"trainer.steps is {spec.trainer.steps}, so nothing is left to train, because steps "
            "are counted on"
        )
        yield (
            message,
            f"write trainer.steps of more than {manifest.step}, or choose an earlier step with RUN@STEP",
        )
    if theirs is not None:
        yield from _other_model(_models(theirs), _models(spec))


def _other_model(theirs: dict[str, str], ours: dict[str, str]) -> Iterator[tuple[str, str]]:
    for key in sorted(theirs.keys() & ours.keys()):
        if theirs[key] != ours[key]:
            yield (
                f"it is of another model: {key} is {theirs[key][:80]} there and {ours[key][:80]} here",
                f"write {theirs[key][:80]}",
            )


def _models(spec: RunSpec) -> dict[str, str]:
    """Return the settings in the command or in its overrides that name the model; empty if there are none."""
    try:
        words = shlex.split(spec.trainer.command)
    except ValueError:
        words = []
    words += spec.trainer.prime_rl.overrides if spec.trainer.prime_rl is not None else ()
    return dict(_settings(words, _MODEL_KEYS))


def _settings(words: list[str], keys: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the settings with these keys, written as --key value, --key=value or key=value."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, sign, value = word.lstrip("-+").partition("=")
        key = name.replace("-", "_")
        if key in keys and (sign or (word.startswith("--") and following and not following.startswith("-"))):
            yield key, value if sign else following
