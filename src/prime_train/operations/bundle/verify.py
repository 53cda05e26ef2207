"""Verify a bundle that someone handed over: every hash, and that code, config and checkpoint belong to the run.

Nothing is unpacked: the archive is read once as a stream, in bounded memory. Where the bundle refers to objects in a bucket, these can be
compared, too.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.checkpoints.archive import BROKEN, uncompressed
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.tar_reader import Member, TarReader, Unsafe
from prime_train.checkpoints.unpacking import MEMBERS_MAX
from prime_train.checkpoints.verify import verify as damaged
from prime_train.configs.parsing import read_text
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.keys import is_run_id
from prime_train.core.manifest import CHUNK_BYTES, Manifest
from prime_train.core.text.paths import same_but_for_case, violation_of_path
from prime_train.core.text.safe import neutralized
from prime_train.operations.bundle.layout import CODE, CONFIG, FORMAT, MANIFEST, REQUIRED, RUN, SUMS, WEIGHTS
from prime_train.operations.checkpoints.progress import Progress, silent
from prime_train.ports import Bucket

KEPT_BYTES_MAX = 64 * 2**20
"""Upper limit of a file that is read as a whole. The manifest of the largest checkpoint has a few MB."""
_KEPT = frozenset({SUMS, RUN, CONFIG, MANIFEST})
_SUM = re.compile(r"(\\?)([0-9a-f]{64})  (.+)")
"""A line of sha256sum; the backslash says that a line break in the path is escaped."""


@dataclass(frozen=True)
class WrongFile:
    """Something that is wrong with a bundle: the file, and a predicate that follows its name."""

    path: str
    what: str


@dataclass(frozen=True)
class VerifiedBundle:
    """A bundle that was read to its end. `step`: the step of its checkpoint, None if it has none; `bucket`: the bucket whose objects it
    refers to, otherwise empty; `objects_checked`: these were compared, too; `wrong_files`: empty if it is intact."""

    run: str
    files: int
    size_bytes: int
    step: int | None
    with_weights: bool
    bucket: str
    objects_checked: bool
    wrong_files: tuple[WrongFile, ...]

    @property
    def intact(self) -> bool:
        return not self.wrong_files


@dataclass(frozen=True)
class _File:
    """A file that was read. `chunks`: the digests of its chunks, if it is one of the checkpoint's; `data`: its content, if it was kept."""

    size: int
    sha256: str
    chunks: tuple[str, ...] = ()
    data: bytes = b""


@dataclass
class _Bundle:
    run: str
    files: dict[str, _File]
    about: Mapping[str, object] = field(default_factory=dict)
    manifest: Manifest | None = None


def verify_bundle(file: Path, bucket: Bucket | None = None, *, progress: Progress = silent) -> VerifiedBundle:
    """Return what is wrong with the bundle. `bucket`: where to compare the checkpoint's files, too.

    Raises UsageError if the bundle cannot be read to its end, is no bundle, or has a member that must not be unpacked, and the bucket's
    errors.
    """
    bundle = _read(file)
    wrong_files = [*_of_sums(bundle), *_of_run(bundle), *_of_config(bundle), *_of_code(bundle), *_of_manifest(bundle), *_of_weights(bundle)]
    size = sum(one.size for one in bundle.files.values())
    step = bundle.manifest.step if bundle.manifest is not None else None
    url = str(_part(bundle.about, "checkpoint").get("bucket") or "")
    compared = bucket is not None and bundle.manifest is not None
    if bucket is not None and bundle.manifest is not None:
        with progress(bundle.run, bundle.manifest.size) as report:
            wrong_files += [
                WrongFile(neutralized(one.path), f"in the bucket: {one.what}") for one in damaged(bucket, bundle.manifest, progress=report)
            ]
    return VerifiedBundle(bundle.run, len(bundle.files), size, step, bool(_weights(bundle)), neutralized(url), compared, tuple(wrong_files))


def _read(file: Path) -> _Bundle:
    try:
        with file.open("rb") as raw, uncompressed(raw) as stream:
            files = dict(_files(TarReader(stream, headers_max=MEMBERS_MAX)))
    except Unsafe as error:
        raise UsageError(f"{file} is not safe to unpack: {error}", fix="ask for another copy", code=Exit.FINDINGS) from error
    except BROKEN as error:
        what = f"{file} is truncated, damaged or not an archive: {str(error)[:200]}"
        raise UsageError(what, fix="get it again", code=Exit.FINDINGS) from error
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}", fix="write the path of a bundle") from error
    tops = {path.split("/", 1)[0] for path in files}
    run = next(iter(tops), "")
    if len(tops) != 1 or not is_run_id(run) or f"{run}/{SUMS}" not in files:
        fix = "write the path of an archive that this command made"
        raise UsageError(f"{file} is not a bundle: it has no folder named by a run with a {SUMS}", fix=fix, code=Exit.FINDINGS)
    return _Bundle(run, {path.split("/", 1)[1]: one for path, one in files.items()})


def _files(reader: TarReader) -> Iterator[tuple[str, _File]]:
    """Yield path and content of each file. Raises Unsafe for a member that unpacking could write elsewhere or twice."""
    seen: set[str] = set()
    for member in reader.members():
        _check(member)
        if member.name in seen:
            raise Unsafe(f"{member.name[:200]!r} is in the archive twice")
        if member.is_file:
            seen.add(member.name)
            yield member.name, _content(member, reader)
    if pair := same_but_for_case(seen):
        raise Unsafe(f"{pair[0][:200]!r} and {pair[1][:200]!r} differ only in case")


def _check(member: Member) -> None:
    violation = violation_of_path(member.name)
    if violation is not None:
        raise Unsafe(f"{member.name[:200]!r} {violation}")
    if not member.is_folder and (not member.is_file or "/" not in member.name):
        raise Unsafe(f"{member.name[:200]!r} is not a file in a folder")


def _content(member: Member, reader: TarReader) -> _File:
    name = member.name.split("/", 1)[1]
    if name in _KEPT and member.size > KEPT_BYTES_MAX:
        raise Unsafe(f"{member.name[:200]!r} has {member.size} bytes; at most {KEPT_BYTES_MAX} are allowed")
    is_weight, sha256 = name.startswith(f"{WEIGHTS}/"), hashlib.sha256()
    kept, chunks, part = [], [], bytearray()
    for piece in reader.content():
        sha256.update(piece)
        if name in _KEPT:
            kept.append(piece)
        if is_weight:
            part += piece
            while len(part) >= CHUNK_BYTES:
                chunks.append(digest_of(bytes(part[:CHUNK_BYTES])))
                del part[:CHUNK_BYTES]
    if part:
        chunks.append(digest_of(bytes(part)))
    return _File(member.size, sha256.hexdigest(), tuple(chunks), b"".join(kept))


def _of_sums(bundle: _Bundle) -> Iterator[WrongFile]:
    listed: dict[str, str] = {}
    for line in bundle.files[SUMS].data.decode("utf-8", "surrogateescape").split("\n"):
        found = _SUM.fullmatch(line)
        if found is not None:
            listed[found[3].replace("\\n", "\n") if found[1] else found[3]] = found[2]
        elif line:
            yield WrongFile(SUMS, f"has a line that is no hash and path: {neutralized(line[:80])}")
    for path, digest in listed.items():
        if path not in bundle.files:
            yield WrongFile(neutralized(path), "is missing")
        elif bundle.files[path].sha256 != digest:
            yield WrongFile(neutralized(path), f"has another content than {SUMS} says")
    yield from (WrongFile(neutralized(path), f"is not in {SUMS}") for path in bundle.files if path not in listed and path != SUMS)
    yield from (WrongFile(path, "is missing") for path in REQUIRED if path not in bundle.files and path not in listed)


def _of_run(bundle: _Bundle) -> Iterator[WrongFile]:
    """Read the record of the run."""
    if RUN not in bundle.files:
        return
    try:
        about = json.loads(bundle.files[RUN].data)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        yield WrongFile(RUN, f"is not of the format {FORMAT!r}; another version of prime-train may have made it")
        return
    bundle.about = about
    if about.get("run") != bundle.run:
        yield WrongFile(RUN, f"is of another run than the bundle's folder, {bundle.run}")


def _of_config(bundle: _Bundle) -> Iterator[WrongFile]:
    if CONFIG not in bundle.files:
        return
    read = read_text(bundle.files[CONFIG].data.decode(errors="replace"), CONFIG)
    if read.spec is None:
        yield WrongFile(CONFIG, f"is not a valid config: {neutralized(read.findings[0].message)}")
    elif bundle.about and read.spec.name != bundle.about.get("name"):
        yield WrongFile(CONFIG, f"is a config of another run, {read.spec.name}")


def _of_code(bundle: _Bundle) -> Iterator[WrongFile]:
    wanted = _part(bundle.about, "code").get("sha256")
    found = bundle.files.get(CODE)
    if found is not None and bundle.about and found.sha256 != wanted:
        yield WrongFile(CODE, "is not the code of the run")
    elif found is None and wanted is not None:
        yield WrongFile(CODE, "is missing")


def _of_manifest(bundle: _Bundle) -> Iterator[WrongFile]:
    """Read the manifest, and compare it with the run."""
    found, wanted = bundle.files.get(MANIFEST), _part(bundle.about, "checkpoint")
    if found is None:
        if wanted:
            yield WrongFile(MANIFEST, "is missing")
        return
    try:
        bundle.manifest = manifest = Manifest.model_validate_json(found.data)
    except ValueError:
        yield WrongFile(MANIFEST, "is not a valid manifest")
        return
    if manifest.run != bundle.run or (bundle.about and manifest.digest != wanted.get("digest")):
        yield WrongFile(MANIFEST, "is not of the checkpoint of this run")


def _of_weights(bundle: _Bundle) -> Iterator[WrongFile]:
    manifest, present = bundle.manifest, _weights(bundle)
    is_included = _part(bundle.about, "checkpoint").get("included") is True
    if manifest is None:
        yield from (WrongFile(neutralized(path), "is in no manifest") for path in present)
        return
    if not (is_included or present):
        return
    wanted = {f"{WEIGHTS}/{manifest.folder}/{one.path}": one for one in manifest.files}
    for path, one in wanted.items():
        found = bundle.files.get(path)
        if found is None:
            yield WrongFile(neutralized(path), "is missing")
        elif (found.size, found.chunks) != (one.size, tuple(chunk.digest for chunk in one.chunks)):
            yield WrongFile(neutralized(path), "has another content than the manifest says")
    yield from (WrongFile(neutralized(path), "is not in the manifest") for path in present if path not in wanted)


def _weights(bundle: _Bundle) -> Sequence[str]:
    return [path for path in bundle.files if path.startswith(f"{WEIGHTS}/")]


def _part(values: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}
