"""The list of a run's checkpoints, read from the bucket alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.buckets.keys import (
    Mark,
    Place,
    blob_prefix,
    descendants_prefix,
    manifest_prefix,
    mark_prefix,
    marked,
    parse_descendant_key,
    parse_manifest_key,
    parse_pin_key,
    pin_prefix,
)
from prime_train.buckets.port import GET_BYTES_MAX, Bucket, Stat
from prime_train.checkpoints.manifest import Manifest, descendant_manifest, missing_blobs
from prime_train.checkpoints.retention import Kept, RetentionPolicy
from prime_train.runs.resume_point import ResumePoint

MANIFESTS_MAX = 10_000


@dataclass(frozen=True)
class Blob:
    """A blob in the bucket: its size in bytes, and the second of its last write by the bucket's clock."""

    size: int
    written_s: int


@dataclass(frozen=True)
class Catalog:
    """The checkpoints of one run at one moment, newest first. `blobs` are its own; `shared`: those of another
    run that its manifests list, if it is a descendant; `descendants`: the manifests of its descendants, whose
    blobs must be kept. `unread`: keys of manifests that cannot be read. `marks`: which checkpoints are proven
    or distrusted.
    """

    run_id: str
    manifests: tuple[Manifest, ...]
    blobs: Mapping[str, Blob]
    pinned: frozenset[str]
    unread: tuple[str, ...] = ()
    shared: Mapping[str, Blob] = field(default_factory=dict)
    descendants: tuple[Manifest, ...] = ()
    marks: Mapping[Mark, frozenset[Place]] = field(default_factory=dict)

    def has(self, mark: Mark, manifest: Manifest) -> bool:
        """Return whether the checkpoint has this mark."""
        return (manifest.step, manifest.attempt) in self.marks.get(mark, frozenset())

    def missing(self, manifest: Manifest) -> tuple[str, ...]:
        """Return the keys of the manifest's blobs that are absent from the bucket or have another size
        there.
        """
        return missing_blobs(manifest, self._sizes())

    def complete(self) -> list[Manifest]:
        sizes = self._sizes()
        return [manifest for manifest in self.manifests if not missing_blobs(manifest, sizes)]

    def _sizes(self) -> dict[str, int]:
        return {key: blob.size for blobs in (self.blobs, self.shared) for key, blob in blobs.items()}

    def kept(self, policy: RetentionPolicy) -> list[Kept]:
        """Return the checkpoints as values that the retention policy takes."""
        complete = {manifest.key for manifest in self.complete()}
        return [
            Kept(
                m.step,
                m.attempt,
                m.key,
                m.key in complete,
                getattr(m, policy.best_by),
                proven=self.has(Mark.PROVEN, m),
                is_doubtful=m.finite is False or self.has(Mark.DISTRUSTED, m),
                best_step=m.best_step,
            )
            for m in self.manifests
        ]


class Reader:
    """Reads catalogs of one run; a manifest stays cached until its object is written again."""

    def __init__(self, bucket: Bucket, run_id: str) -> None:
        self._bucket = bucket
        self._run_id = run_id
        self._read: dict[Stat, Manifest | None] = {}
        self._descendants: dict[Stat, Manifest] = {}

    def catalog(self) -> Catalog:
        """Return the current catalog. Raises the bucket's errors. Blobs are listed before manifests: a blob
        that was written in between can only be reported as missing.
        """
        blobs = self._blobs(self._run_id)
        listed = [
            stat
            for stat in self._bucket.list(manifest_prefix(self._run_id))
            if parse_manifest_key(self._run_id, stat.key)
        ]
        self._read = {stat: self._read[stat] for stat in listed if stat in self._read}
        newest = sorted(listed, key=lambda stat: stat.key, reverse=True)[:MANIFESTS_MAX]
        known = [(stat.key, self._manifest(stat)) for stat in newest]
        pins = [parse_pin_key(self._run_id, stat.key) for stat in self._bucket.list(pin_prefix(self._run_id))]
        manifests = tuple(
            sorted((m for _, m in known if m is not None), key=lambda m: (m.step, m.attempt), reverse=True)
        )
        unread = [key for key, manifest in known if manifest is None] + [
            stat.key for stat in listed if stat not in newest
        ]
        pinned = frozenset(m.key for m in manifests if (m.step, m.attempt) in pins)
        shared = {
            key: blob
            for holder in sorted({m.holder for m in manifests} - {self._run_id})
            for key, blob in self._blobs(holder).items()
        }
        descendants, unread_descendants = read_descendants(self._bucket, self._run_id, self._descendants)
        marks = marked(self._run_id, [stat.key for stat in self._bucket.list(mark_prefix(self._run_id))])
        return Catalog(
            self._run_id, manifests, blobs, pinned, (*unread, *unread_descendants), shared, descendants, marks
        )

    def _blobs(self, run_id: str) -> dict[str, Blob]:
        return {stat.key: Blob(stat.size, stat.written_s) for stat in self._bucket.list(blob_prefix(run_id))}

    def _manifest(self, stat: Stat) -> Manifest | None:
        """Return the manifest; None if it cannot be read, is too large, its content does not match its key,
        or it was deleted meanwhile.
        """
        if stat not in self._read:
            self._read[stat] = read_manifest(self._bucket, stat.key) if stat.size <= GET_BYTES_MAX else None
        return self._read[stat]


def read_descendants(
    bucket: Bucket, run_id: str, known: dict[Stat, Manifest] | None = None
) -> tuple[tuple[Manifest, ...], tuple[str, ...]]:
    """Return the manifests of the descendants that use content of the run, and the keys of those that cannot
    be read. A descendant exists from the moment this is recorded, so whoever deletes blobs reads this after
    the manifests were deleted, and before the first blob is. `known`: records that were read before and are
    read again only if they were written since.
    """
    known = known if known is not None else {}
    manifests, unread = [], []
    for stat in bucket.list(descendants_prefix(run_id)):
        if parse_descendant_key(run_id, stat.key) is None:
            continue
        if stat not in known and (content := bucket.get(stat.key)) is not None:
            manifest = descendant_manifest(run_id, stat.key, content.data)
            if manifest is None:
                unread.append(stat.key)
                continue
            known[stat] = manifest
        if stat in known:
            manifests.append(known[stat])
    return tuple(manifests), tuple(unread)


def read_manifest(bucket: Bucket, key: str) -> Manifest | None:
    """Return the manifest at `key`; None if there is none, it cannot be read, or its content belongs to
    another key.
    """
    content = bucket.get(key)
    if content is None:
        return None
    try:
        manifest = Manifest.model_validate_json(content.data)
    except ValueError:
        return None
    return manifest if manifest.key == key else None


def point_of(manifest: Manifest) -> ResumePoint:
    return manifest.point
