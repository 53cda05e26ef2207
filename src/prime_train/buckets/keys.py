"""All names derived from a run: its id, its pods, its keys in the bucket.

Objects that a run needs are under `RUNS`. Objects kept only for inspection are under `EVIDENCE`, because a
bucket expires objects by the first part of their key. `RECORDS` belong to the control plane and are not
accessible to machines. `TASKS` tell which runs belong to a config that was exported to another tool.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

RUNS, EVIDENCE, RECORDS, TASKS = "runs/", "evidence/", "attempts/", "tasks/"
"""The possible first parts of a key in the bucket."""

MARK_KEY = "bucket.json"
"""Key of the object with the bucket's identity, written when the bucket is created. An empty folder, where
nothing is mounted, lacks it.
"""
RUN_ID_PATTERN = r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?"
_RUN_ID = re.compile(RUN_ID_PATTERN)
IDENTITY_CHARS = 16
IDENTITY_PATTERN = rf"[0-9a-f]{{{IDENTITY_CHARS}}}"
"""Pattern of the random identity of an attempt. An attempt's number may be used twice after a store was
restored from an older copy; its identity is not.
"""
IDENTITY_IN_NAME_CHARS = 8
"""Number of characters of an attempt's identity in its pod's name."""
_IDENTITY = re.compile(IDENTITY_PATTERN)
_POD = re.compile(rf"pt-({RUN_ID_PATTERN})-e([1-9][0-9]{{0,8}})(-a[0-9a-f]{{{IDENTITY_IN_NAME_CHARS}}})?")
_RECORD = re.compile(r"([0-9]{9})-([0-9]{9})\.json")
_MANIFEST = re.compile(r"([0-9]{12})-e(0|[1-9][0-9]{0,8})\.json")
_MARK = re.compile(r"([0-9]{12})-e(0|[1-9][0-9]{0,8})-([a-z]{1,20})")
_DESCENDANT = re.compile(rf"({RUN_ID_PATTERN})/([0-9]{{12}})\.json")
DIGEST_PATTERN = r"blake3-[0-9a-f]{64}"
CODEC_PATTERN = r"[a-z0-9]{1,12}"
_DIGEST = re.compile(DIGEST_PATTERN)
_CODEC = re.compile(f"({CODEC_PATTERN})?")


def is_run_id(text: str) -> bool:
    """Return whether `text` can name a run: lower-case letters, digits and inner hyphens, at most 48
    characters.
    """
    return _RUN_ID.fullmatch(text) is not None


def is_identity(text: str) -> bool:
    """Return whether `text` can be the identity of an attempt: sixteen hex digits."""
    return _IDENTITY.fullmatch(text) is not None


def pod_name(run_id: str, attempt: int, identity: str = "") -> str:
    """Return the unique name of the pod of this attempt, by which the pod of a lost create call is found
    again. It includes the beginning of the attempt's identity, which distinguishes it from another attempt
    with the same number.
    """
    return f"pt-{run_id}-e{attempt}" + (f"-a{identity[:IDENTITY_IN_NAME_CHARS]}" if identity else "")


def parse_pod_name(name: str) -> tuple[str, int] | None:
    """Return `(run_id, attempt)` from the name of a pod of prime-train, or None for any other name."""
    found = _POD.fullmatch(name)
    return (found.group(1), int(found.group(3))) if found else None


def run_prefixes(run_id: str) -> tuple[str, ...]:
    """Return the key prefixes of all objects of the run in the bucket."""
    return run_prefix(run_id), evidence_prefix(run_id), record_prefix(run_id)


def run_prefix(run_id: str) -> str:
    """Return the key prefix of the objects that are needed to continue the run or to use its results."""
    return f"{RUNS}{run_id}/"


def spec_key(run_id: str) -> str:
    return f"runs/{run_id}/spec.json"


def code_key(run_id: str, revision: int = 0) -> str:
    """Return the key of the working tree as of the launch, or of the resume that introduced revision 1, 2,
    ... of the code: a gzipped tar that every later attempt unpacks.
    """
    return f"runs/{run_id}/code{f'-{revision}' if revision else ''}.tar.gz"


def code_keys(key: str) -> tuple[str, ...]:
    """Return the key of a working tree, and the one under which it was stored before 2026-11-23."""
    folder, is_code, name = key.rpartition("/code")
    return (key, f"{folder}/tree{name}") if is_code else (key,)


def run_of(key: str) -> str:
    """Return the id of the run that the key of one of its objects below `RUNS` names."""
    return key.removeprefix(RUNS).partition("/")[0]


def blob_prefix(run_id: str) -> str:
    return f"runs/{run_id}/blobs/"


def blob_key(run_id: str, digest: str, codec: str = "") -> str:
    """Return the key of the content with this digest (`blake3-<hex>`), encoded by `codec`. Raises ValueError
    if either is malformed.
    """
    return f"runs/{run_id}/blobs/{_blob_name(digest, codec)}"


def _blob_name(digest: str, codec: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"not a digest such as blake3-<hex>: {digest[:80]!r}")
    if not _CODEC.fullmatch(codec):
        raise ValueError(f"not a codec such as zstd: {codec[:80]!r}")
    return f"{digest}{'.' if codec else ''}{codec}"


def manifest_prefix(run_id: str) -> str:
    return f"runs/{run_id}/manifests/"


def manifest_key(run_id: str, step: int, attempt: int) -> str:
    """Return the key of a manifest. Keys of one run sort by step, then attempt. Attempt 0 is that of the
    checkpoint from which the run was started, if it is a descendant of another run.
    """
    return f"runs/{run_id}/manifests/{step:012d}-e{attempt}.json"


def parse_manifest_key(run_id: str, key: str) -> tuple[int, int] | None:
    """Return `(step, attempt)` from a manifest's key, or None if it is not a manifest of this run."""
    prefix = manifest_prefix(run_id)
    found = _MANIFEST.fullmatch(key[len(prefix) :]) if key.startswith(prefix) else None
    return (int(found.group(1)), int(found.group(2))) if found else None


def results_key(run_id: str) -> str:
    """Return the key of the run's results, which the control plane writes when the run has ended."""
    return f"runs/{run_id}/results.json"


def latest_key(run_id: str) -> str:
    return f"runs/{run_id}/latest.json"


def pin_prefix(run_id: str) -> str:
    return f"runs/{run_id}/pins/"


def pin_key(run_id: str, step: int, attempt: int) -> str:
    """Return the key of a pin: an empty object of this name protects that checkpoint from every clean-up."""
    return f"runs/{run_id}/pins/{step:012d}-e{attempt}.json"


def parse_pin_key(run_id: str, key: str) -> tuple[int, int] | None:
    """Return `(step, attempt)` of the checkpoint that `key` pins, or None if it is not a pin of this run."""
    prefix = pin_prefix(run_id)
    return (
        parse_manifest_key(run_id, manifest_prefix(run_id) + key[len(prefix) :])
        if key.startswith(prefix)
        else None
    )


def mark_prefix(run_id: str) -> str:
    return f"runs/{run_id}/marks/"


def mark_key(run_id: str, step: int, attempt: int, mark: str) -> str:
    """Return the key of an empty object that says something of a checkpoint, such as `proven`. Only the
    control plane writes them.
    """
    return f"runs/{run_id}/marks/{step:012d}-e{attempt}-{mark}"


def parse_mark_key(run_id: str, key: str) -> tuple[int, int, str] | None:
    """Return `(step, attempt, mark)` from the key of a mark, or None if it is not a mark of this run."""
    prefix = mark_prefix(run_id)
    found = _MARK.fullmatch(key[len(prefix) :]) if key.startswith(prefix) else None
    return (int(found.group(1)), int(found.group(2)), found.group(3)) if found else None


Place = tuple[int, int]
"""The step and the attempt of a checkpoint."""


class Mark(StrEnum):
    """What an empty object beside a manifest says of the checkpoint, for whoever has only the bucket."""

    PROVEN = "proven"
    DISTRUSTED = "distrusted"


def marked(run_id: str, keys: Iterable[str]) -> dict[Mark, frozenset[Place]]:
    """Return which checkpoints have each mark, from the keys of the run's marks in the bucket; marks that are
    not known are ignored."""
    found = [place for key in keys if (place := parse_mark_key(run_id, key)) is not None]
    return {
        mark: frozenset((step, attempt) for step, attempt, name in found if name == mark) for mark in Mark
    }


def descendants_prefix(run_id: str) -> str:
    """Return the key prefix of the records of checkpoints of this run, or of its descendants, from which
    other runs were started.
    """
    # The folder keeps the name that the first version gave it: buckets with such records must stay safe from
    # every later clean-up.
    return f"runs/{run_id}/branches/"


def descendant_key(run_id: str, descendant: str, step: int) -> str:
    """Return the key of the record that the run `descendant` was started from content of `run_id` at this
    step. The record is the manifest of the descendant, whose content every clean-up of `run_id` keeps.
    """
    return f"{descendants_prefix(run_id)}{descendant}/{step:012d}.json"


def parse_descendant_key(run_id: str, key: str) -> tuple[str, int] | None:
    """Return `(descendant, step)` from the key of such a record, or None for any other key."""
    prefix = descendants_prefix(run_id)
    found = _DESCENDANT.fullmatch(key[len(prefix) :]) if key.startswith(prefix) else None
    return (found.group(1), int(found.group(3))) if found else None


def record_prefix(run_id: str) -> str:
    return f"{RECORDS}{run_id}/"


def record_key(run_id: str, attempt: int, turn: int) -> str:
    """Return the key of the run's record for this turn; keys of one run sort by attempt, then turn."""
    return f"{record_prefix(run_id)}{attempt:09d}-{turn:09d}.json"


def parse_record_key(key: str) -> tuple[str, int, int] | None:
    """Return `(run_id, attempt, turn)` from a record's key, or None if it is not a record."""
    run_id, _, name = key.removeprefix(RECORDS).partition("/")
    found = _RECORD.fullmatch(name) if key.startswith(RECORDS) and is_run_id(run_id) else None
    return (run_id, int(found.group(1)), int(found.group(2))) if found else None


def evidence_prefix(run_id: str, attempt: int | None = None) -> str:
    """Return the key prefix of the evidence of all attempts of the run, or of one attempt."""
    return f"{EVIDENCE}{run_id}/" + ("" if attempt is None else f"e{attempt}/")


METRICS_EVIDENCE = "metrics.jsonl"
"""Name under which the end of the trainer's metrics file is kept as evidence."""


def evidence_key(run_id: str, attempt: int, name: str) -> str:
    return f"{evidence_prefix(run_id, attempt)}{name}"


NO_IDENTITY = "0" * IDENTITY_CHARS
"""What keys contain in place of the identity for an attempt that has none."""
METRICS_STREAM = "metrics.csv"
AFTER_STREAM, EVALUATIONS_STREAM = "after.log", "evaluations.log"
"""Logs of the steps under `after`: after training, and while it goes on."""
STREAMS = ("setup.log", "smoke.log", "trainer.log", EVALUATIONS_STREAM, AFTER_STREAM, METRICS_STREAM)
"""Files of an attempt whose text is stored in pieces while they grow."""
OUTPUT_MANIFEST = "manifest.json"
RESULTS = "results.json"
_PIECE = rf"({'|'.join(map(re.escape, STREAMS))})/[0-9]{{9}}"
_OUTPUTS = re.compile(
    rf"e([1-9][0-9]{{0,8}})-({IDENTITY_PATTERN})/(?:({re.escape(OUTPUT_MANIFEST)})|{_PIECE})"
)


def outputs_prefix(run_id: str, attempt: int | None = None, identity: str = "") -> str:
    """Return the key prefix of the outputs, logs and metrics of the run: of all attempts, of all attempts
    with this number, or of one attempt.
    """
    return f"{RUNS}{run_id}/outputs/" + (
        "" if attempt is None else f"e{attempt}-" + (f"{identity}/" if identity else "")
    )


def output_manifest_key(run_id: str, attempt: int, identity: str) -> str:
    """Return the key of the list of the attempt's outputs."""
    return f"{outputs_prefix(run_id, attempt, identity)}{OUTPUT_MANIFEST}"


def attempt_results_key(run_id: str, attempt: int, identity: str) -> str:
    """Return the key of the results that the machine of this attempt measured."""
    return f"{outputs_prefix(run_id, attempt, identity or NO_IDENTITY)}{RESULTS}"


def output_blob_key(run_id: str, attempt: int, identity: str, digest: str, codec: str = "") -> str:
    """Return the key of a part of the attempt's outputs, named as in `blob_key`."""
    return f"{outputs_prefix(run_id, attempt, identity)}blobs/{_blob_name(digest, codec)}"


def stream_prefix(run_id: str, attempt: int, identity: str, stream: str) -> str:
    """Return the key prefix of the pieces of one of the `STREAMS`; `identity` is empty for attempts that have
    none.
    """
    return f"{outputs_prefix(run_id, attempt, identity or NO_IDENTITY)}{stream}/"


def piece_key(run_id: str, attempt: int, identity: str, stream: str, number: int) -> str:
    """Return the key of a piece of one of the `STREAMS`; keys of one stream sort in the order of its text."""
    return f"{stream_prefix(run_id, attempt, identity, stream)}{number:09d}"


def parse_output_key(run_id: str, key: str) -> tuple[int, str, str] | None:
    """Return `(attempt, identity, name)` of a key below `outputs_prefix`, or None for any other key. The name
    is `OUTPUT_MANIFEST` or that of a stream.
    """
    prefix = outputs_prefix(run_id)
    found = _OUTPUTS.fullmatch(key[len(prefix) :]) if key.startswith(prefix) else None
    return (int(found.group(1)), found.group(2), found.group(3) or found.group(4)) if found else None


def task_prefix(task: str) -> str:
    """Return the key prefix of what is known of an exported task."""
    return f"{TASKS}{task}/"


def task_run_key(task: str, number: int) -> str:
    """Return the key of the object with the id of the run that the task's machine of this number has
    launched.
    """
    return f"{task_prefix(task)}{number:09d}"


def task_used_key(task: str, number: int) -> str:
    """Return the key of the object that says what the task's machine of this number has used of the
    budget.
    """
    return f"{task_used_prefix(task)}{number:09d}"


def task_used_prefix(task: str) -> str:
    return f"{task_prefix(task)}used/"


def task_done_key(task: str) -> str:
    """Return the key of the object with the id of the run in which the task has succeeded."""
    return f"{task_prefix(task)}done"
