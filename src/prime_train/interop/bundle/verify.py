"""Verify a bundle that someone handed over: every hash, and that code, config and checkpoint belong to the
run.

Nothing is unpacked: the archive is read once as a stream, in bounded memory, and the code in it from one
temporary copy. Where the bundle refers to objects in a bucket, these can be compared, too.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.buckets.keys import is_run_id
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.archive import BROKEN, uncompressed
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import CHUNK_BYTES, Manifest, as_laid_down
from prime_train.checkpoints.progress import Progress, silent
from prime_train.checkpoints.tar_reader import Member, TarReader, Unsafe
from prime_train.checkpoints.unpacking import MEMBERS_MAX
from prime_train.checkpoints.verify import verify as damaged
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.interop.bundle.code_archive import CodeLook, look
from prime_train.interop.bundle.layout import (
    CODE,
    CONFIG,
    FORMAT,
    MANIFEST,
    NAMESPACE,
    REQUIRED,
    RUN,
    SIGNATURE,
    SUMS,
    WEIGHTS,
)
from prime_train.interop.bundle.risks import folder_outside, risks_of
from prime_train.interop.bundle.ssh_signature import fingerprint, signer_of
from prime_train.spec.reader import read_text
from prime_train.text.auto_run import GIT, auto_run_files, is_git
from prime_train.text.paths import same_but_for_case, violation_of_path
from prime_train.text.safe import neutralized

KEPT_BYTES_MAX = 64 * 2**20
"""Upper limit of a file that is read as a whole. The manifest of the largest checkpoint has a few MB."""
CODE_BYTES_MAX = 2**30
_KEPT = frozenset({SUMS, SIGNATURE, RUN, CONFIG, MANIFEST})
_SUM = re.compile(r"(\\?)([0-9a-f]{64})  (.+)")
"""A line of sha256sum; the backslash says that a line break in the path is escaped."""


@dataclass(frozen=True)
class WrongFile:
    """Something that is wrong with a bundle: the file, and a predicate that follows its name."""

    path: str
    what: str
    is_unsafe: bool = False
    """Whether it would do harm once it was unpacked or launched, rather than being damaged."""


@dataclass(frozen=True)
class VerifiedBundle:
    """A bundle that was read to its end. `step`: the step of its checkpoint, None if it has none; `bucket`:
    the bucket whose objects it refers to, otherwise empty; `objects_checked`: these were compared, too;
    `wrong_files`: empty if it is intact; `risks`: what its config and its code ask for, which its reader
    should know before launching it. `signed_by`: the fingerprint of the key that signed it, empty if none
    has; `signer_checked`: this is the key that the caller named.
    """

    run: str
    files: int
    size_bytes: int
    step: int | None
    with_weights: bool
    bucket: str
    objects_checked: bool
    wrong_files: tuple[WrongFile, ...]
    risks: tuple[str, ...] = ()
    signed_by: str = ""
    signer_checked: bool = False

    @property
    def intact(self) -> bool:
        return not self.wrong_files

    @property
    def verdict(self) -> str:
        """`intact`, `UNSAFE` or `DAMAGED`."""
        return (
            "intact"
            if self.intact
            else "UNSAFE"
            if any(one.is_unsafe for one in self.wrong_files)
            else "DAMAGED"
        )

    @property
    def not_proven(self) -> str:
        """What the verdict does not prove, as a sentence."""
        if self.signer_checked:
            return (
                "The key that you named has signed it; no signature proves that its code and commands are "
                "harmless."
            )
        return (
            "Hashes show damage. They do not prove who made the bundle, nor that its code and commands are "
            "harmless."
        )


@dataclass(frozen=True)
class _File:
    """A file that was read. `chunks`: the digests of its chunks, if it is one of the checkpoint's; `data`:
    its content, if it was kept.
    """

    size: int
    sha256: str
    chunks: tuple[str, ...] = ()
    data: bytes = b""


@dataclass
class _Bundle:
    """`folders`: the paths of folders that the archive names, which unpacking makes also if nothing lies in
    them.
    """

    run: str
    files: dict[str, _File]
    folders: frozenset[str] = frozenset()
    about: Mapping[str, object] = field(default_factory=dict)
    manifest: Manifest | None = None
    risks: list[str] = field(default_factory=list)
    code: CodeLook | None = None


def verify_bundle(
    file: Path, bucket: Bucket | None = None, *, signer: bytes | None = None, progress: Progress = silent
) -> VerifiedBundle:
    """Return what is wrong with the bundle. `bucket`: where to compare the checkpoint's files, too; `signer`:
    the public key that must have signed it.

    Raises UsageError if the bundle cannot be read to its end, is no bundle, or has a member that must not be
    unpacked, and the bucket's errors.
    """
    bundle = _read(file)
    signed_by = _signed_by(bundle)
    checks = (_of_sums, _of_names, _of_run, _of_config, _of_code, _of_manifest, _of_weights)
    wrong_files = [
        *_of_signer(bundle, signed_by, signer),
        *(wrong for check in checks for wrong in check(bundle)),
    ]
    size = sum(one.size for one in bundle.files.values())
    step = bundle.manifest.step if bundle.manifest is not None else None
    url = str(_part(bundle.about, "checkpoint").get("bucket") or "")
    compared = bucket is not None and bundle.manifest is not None
    if bucket is not None and bundle.manifest is not None:
        with progress(bundle.run, bundle.manifest.size) as report:
            wrong_files += [
                WrongFile(neutralized(one.path), f"in the bucket: {one.what}")
                for one in damaged(bucket, bundle.manifest, progress=report)
            ]
    return VerifiedBundle(
        bundle.run,
        len(bundle.files),
        size,
        step,
        bool(_weights(bundle)),
        neutralized(url),
        compared,
        tuple(wrong_files),
        risks=tuple(bundle.risks),
        signed_by=fingerprint(signed_by) if signed_by is not None else "",
        signer_checked=signer is not None and signed_by == signer,
    )


def _read(file: Path) -> _Bundle:
    try:
        with file.open("rb") as raw, uncompressed(raw) as stream:
            looks: list[CodeLook] = []
            folders: set[str] = set()
            files = dict(_files(TarReader(stream, headers_max=MEMBERS_MAX), looks, folders))
    except Unsafe as error:
        raise UsageError(
            f"{file} is not safe to unpack: {error}", fix="ask for another copy", code=Exit.FINDINGS
        ) from error
    except BROKEN as error:
        what = f"{file} is truncated, damaged or not an archive: {str(error)[:200]}"
        raise UsageError(what, fix="get it again", code=Exit.FINDINGS) from error
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror or error}", fix="write the path of a bundle"
        ) from error
    tops = {path.split("/", 1)[0] for path in (*files, *folders)}
    run = next(iter(tops), "")
    if len(tops) != 1 or not is_run_id(run) or f"{run}/{SUMS}" not in files:
        fix = "write the path of an archive that this command made"
        raise UsageError(
            f"{file} is not a bundle: it has no folder named by a run with a {SUMS}",
            fix=fix,
            code=Exit.FINDINGS,
        )
    inside = frozenset(path.split("/", 1)[1] for path in folders if "/" in path)
    bundle = _Bundle(run, {path.split("/", 1)[1]: one for path, one in files.items()}, inside)
    bundle.code = looks[0] if looks else None
    return bundle


def _files(reader: TarReader, looks: list[CodeLook], folders: set[str]) -> Iterator[tuple[str, _File]]:
    """Yield path and content of each file, and add what was seen in the code to `looks`, and the paths of
    folders to `folders`. Raises Unsafe for a member that unpacking could write elsewhere or twice.
    """
    seen: set[str] = set()
    for member in reader.members():
        _check(member)
        if member.name in seen:
            raise Unsafe(f"{member.name[:200]!r} is in the archive twice")
        if member.is_folder:
            folders.add(member.name)
        if member.is_file:
            seen.add(member.name)
            yield member.name, _content(member, reader, looks)
    if pair := same_but_for_case(seen | folders):
        raise Unsafe(f"{pair[0][:200]!r} and {pair[1][:200]!r} differ only in case")


def _check(member: Member) -> None:
    violation = violation_of_path(member.name)
    if violation is not None:
        raise Unsafe(f"{member.name[:200]!r} {violation}")
    if is_git(member.name):
        raise Unsafe(f"{member.name[:200]!r} is refused: {GIT}")
    if not member.is_folder and (not member.is_file or "/" not in member.name):
        raise Unsafe(f"{member.name[:200]!r} is not a file in a folder")


def _content(member: Member, reader: TarReader, looks: list[CodeLook]) -> _File:
    name = member.name.split("/", 1)[1]
    if name == CODE:
        return _code(member, reader, looks)
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


def _code(member: Member, reader: TarReader, looks: list[CodeLook]) -> _File:
    if member.size > CODE_BYTES_MAX:
        raise Unsafe(f"{member.name[:200]!r} has {member.size} bytes; at most {CODE_BYTES_MAX} are allowed")
    sha256 = hashlib.sha256()
    with tempfile.TemporaryFile() as copy:
        for piece in reader.content():
            sha256.update(piece)
            copy.write(piece)
        copy.seek(0)
        looks.append(look(copy))
    return _File(member.size, sha256.hexdigest())


def _signed_by(bundle: _Bundle) -> bytes | None:
    """Return the key that signed the hashes; None if none has, or the signature is not valid."""
    found = bundle.files.get(SIGNATURE)
    return signer_of(bundle.files[SUMS].data, found.data, NAMESPACE) if found is not None else None


def _of_signer(bundle: _Bundle, signed_by: bytes | None, signer: bytes | None) -> Iterator[WrongFile]:
    if SIGNATURE in bundle.files and signed_by is None:
        yield WrongFile(SIGNATURE, f"is no valid signature of {SUMS}", is_unsafe=True)
    elif signer is not None and signed_by is None:
        yield WrongFile(SIGNATURE, "is missing: nobody has signed the bundle", is_unsafe=True)
    elif signer is not None and signed_by is not None and signed_by != signer:
        yield WrongFile(
            SIGNATURE,
            f"is by another key, {fingerprint(signed_by)}, than the one that you named, "
            f"{fingerprint(signer)}",
            is_unsafe=True,
        )


def _of_names(bundle: _Bundle) -> Iterator[WrongFile]:
    for path, why in auto_run_files((*bundle.files, *bundle.folders)).items():
        yield WrongFile(neutralized(path), f"would be laid down by unpacking: {why}", is_unsafe=True)


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
    yield from (
        WrongFile(neutralized(path), f"is not in {SUMS}")
        for path in bundle.files
        if path not in listed and path not in (SUMS, SIGNATURE)
    )
    yield from (
        WrongFile(path, "is missing") for path in REQUIRED if path not in bundle.files and path not in listed
    )


def _of_run(bundle: _Bundle) -> Iterator[WrongFile]:
    """Read the record of the run."""
    if RUN not in bundle.files:
        return
    try:
        about = json.loads(bundle.files[RUN].data)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        yield WrongFile(
            RUN, f"is not of the format {FORMAT!r}; another version of prime-train may have made it"
        )
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
    if read.spec is not None:
        bundle.risks += risks_of(read.spec)
        if outside := folder_outside(read.spec):
            yield WrongFile(
                CONFIG,
                f"would pack the folder {neutralized(outside[:200])}, which lies outside of the bundle",
                is_unsafe=True,
            )


def _of_code(bundle: _Bundle) -> Iterator[WrongFile]:
    if bundle.code is not None:
        bundle.risks += bundle.code.risks
        yield from (WrongFile(CODE, what, is_unsafe=True) for what in bundle.code.wrong)
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
    wanted = {f"{WEIGHTS}/{manifest.folder}/{one.path}": one for one in as_laid_down(manifest).files}
    for path, one in wanted.items():
        found = bundle.files.get(path)
        if found is None:
            yield WrongFile(neutralized(path), "is missing")
        elif (found.size, found.chunks) != (one.size, tuple(chunk.digest for chunk in one.chunks)):
            yield WrongFile(neutralized(path), "has another content than the manifest says")
    yield from (
        WrongFile(neutralized(path), "is not in the manifest") for path in present if path not in wanted
    )


def _weights(bundle: _Bundle) -> Sequence[str]:
    return [path for path in bundle.files if path.startswith(f"{WEIGHTS}/")]


def _part(values: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}
