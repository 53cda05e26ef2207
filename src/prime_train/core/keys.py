"""Every name of a run: its id, its pods, its keys in the bucket.

What a run is made of lies under `RUNS`. What was only kept to be looked at lies under `EVIDENCE`: a bucket forgets by the first part of a
key, so that part must tell what may be forgotten. `RECORDS` are the control plane's own, and closed to machines.
"""

import re

RUNS, EVIDENCE, RECORDS = "runs/", "evidence/", "attempts/"
"""With what every key in the bucket begins."""

MARK_KEY = "bucket.json"
"""Of the object that is put into a bucket when it is made, with its identity: an empty folder, where nothing is mounted, lacks it."""
RUN_ID_PATTERN = r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?"
_RUN_ID = re.compile(RUN_ID_PATTERN)
IDENTITY_PATTERN = r"[0-9a-f]{16}"
"""The random identity of an attempt. Its number may be handed out twice where a store was restored from an older copy; this is not."""
IDENTITY_IN_NAME_CHARS = 8
_IDENTITY = re.compile(IDENTITY_PATTERN)
_POD = re.compile(rf"pt-({RUN_ID_PATTERN})-e([1-9][0-9]{{0,8}})(-a[0-9a-f]{{{IDENTITY_IN_NAME_CHARS}}})?")
_RECORD = re.compile(r"([0-9]{9})-([0-9]{9})\.json")
_MANIFEST = re.compile(r"([0-9]{12})-e([1-9][0-9]{0,8})\.json")
DIGEST_PATTERN = r"blake3-[0-9a-f]{64}"
CODEC_PATTERN = r"[a-z0-9]{1,12}"
_DIGEST = re.compile(DIGEST_PATTERN)
_CODEC = re.compile(f"({CODEC_PATTERN})?")


def is_run_id(text: str) -> bool:
    """Whether `text` can name a run: lower-case letters, digits and inner hyphens, 48 characters at most."""
    return _RUN_ID.fullmatch(text) is not None


def is_identity(text: str) -> bool:
    """Whether `text` can be the identity of an attempt: sixteen hex digits."""
    return _IDENTITY.fullmatch(text) is not None


def pod_name(run_id: str, attempt: int, identity: str = "") -> str:
    """The one name of the pod of this run's attempt number `attempt`; it is how a lost create call is found again. The beginning of the
    attempt's identity in it tells the pod from that of a twin with the same number."""
    return f"pt-{run_id}-e{attempt}" + (f"-a{identity[:IDENTITY_IN_NAME_CHARS]}" if identity else "")


def parse_pod_name(name: str) -> tuple[str, int] | None:
    """`(run_id, attempt)` of a pod of ours, or None for anybody else's."""
    found = _POD.fullmatch(name)
    return (found.group(1), int(found.group(3))) if found else None


def run_prefixes(run_id: str) -> tuple[str, ...]:
    """Of everything of the run that is in the bucket."""
    return run_prefix(run_id), evidence_prefix(run_id), record_prefix(run_id)


def run_prefix(run_id: str) -> str:
    """Of what the run needs to go on, or to be used."""
    return f"{RUNS}{run_id}/"


def spec_key(run_id: str) -> str:
    return f"runs/{run_id}/spec.json"


def code_key(run_id: str, revision: int = 0) -> str:
    """The working tree as it was at the launch, or at the resume that brought revision 1, 2, ... of the code: a gzipped tar, which every
    attempt from then on unpacks."""
    return f"runs/{run_id}/tree{f'-{revision}' if revision else ''}.tar.gz"


def blob_prefix(run_id: str) -> str:
    return f"runs/{run_id}/blobs/"


def blob_key(run_id: str, digest: str, codec: str = "") -> str:
    """Where the content with this digest (`blake3-<hex>`) lies, encoded by `codec`. Raises ValueError for anything that is none."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"not a digest such as blake3-<hex>: {digest[:80]!r}")
    if not _CODEC.fullmatch(codec):
        raise ValueError(f"not a codec such as zstd: {codec[:80]!r}")
    return f"runs/{run_id}/blobs/{digest}{'.' if codec else ''}{codec}"


def manifest_prefix(run_id: str) -> str:
    return f"runs/{run_id}/manifests/"


def manifest_key(run_id: str, step: int, attempt: int) -> str:
    """Keys of one run sort by step, then attempt."""
    return f"runs/{run_id}/manifests/{step:012d}-e{attempt}.json"


def parse_manifest_key(run_id: str, key: str) -> tuple[int, int] | None:
    """`(step, attempt)` of a manifest's key, or None when it is not one of this run's."""
    prefix = manifest_prefix(run_id)
    found = _MANIFEST.fullmatch(key[len(prefix) :]) if key.startswith(prefix) else None
    return (int(found.group(1)), int(found.group(2))) if found else None


def latest_key(run_id: str) -> str:
    return f"runs/{run_id}/latest.json"


def pin_prefix(run_id: str) -> str:
    return f"runs/{run_id}/pins/"


def pin_key(run_id: str, step: int, attempt: int) -> str:
    """An empty object of this name keeps that checkpoint from every clean-up."""
    return f"runs/{run_id}/pins/{step:012d}-e{attempt}.json"


def parse_pin_key(run_id: str, key: str) -> tuple[int, int] | None:
    """`(step, attempt)` of the checkpoint that is pinned by `key`, or None."""
    prefix = pin_prefix(run_id)
    return parse_manifest_key(run_id, manifest_prefix(run_id) + key[len(prefix) :]) if key.startswith(prefix) else None


def record_prefix(run_id: str) -> str:
    return f"{RECORDS}{run_id}/"


def record_key(run_id: str, attempt: int, turn: int) -> str:
    """Where the state of the run is recorded as of this turn; keys of one run sort by attempt, then turn."""
    return f"{record_prefix(run_id)}{attempt:09d}-{turn:09d}.json"


def parse_record_key(key: str) -> tuple[str, int, int] | None:
    """`(run_id, attempt, turn)` of a record's key, or None when it is none."""
    run_id, _, name = key.removeprefix(RECORDS).partition("/")
    found = _RECORD.fullmatch(name) if key.startswith(RECORDS) and is_run_id(run_id) else None
    return (run_id, int(found.group(1)), int(found.group(2))) if found else None


def evidence_prefix(run_id: str, attempt: int | None = None) -> str:
    """Of what was kept of all its attempts, or of that one."""
    return f"{EVIDENCE}{run_id}/" + ("" if attempt is None else f"e{attempt}/")


METRICS_EVIDENCE = "metrics.jsonl"
"""Name of the end of the trainer's file of metrics among the evidence."""


def evidence_key(run_id: str, attempt: int, name: str) -> str:
    return f"{evidence_prefix(run_id, attempt)}{name}"
