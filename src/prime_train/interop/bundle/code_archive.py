"""Looks into the code of a bundle as its reader would unpack it: nothing is written but one temporary copy of
the archive.
"""

import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from prime_train.checkpoints.archive import BROKEN, uncompressed
from prime_train.checkpoints.tar_reader import Member, TarReader, Unsafe
from prime_train.checkpoints.unpacking import MEMBERS_MAX
from prime_train.launch.code.archive import BYTES_MAX
from prime_train.text.auto_run import GIT, auto_run_files, is_git, summary
from prime_train.text.paths import is_inside, link_stays_inside, same_but_for_case
from prime_train.text.safe import neutralized

UNPACKED_BYTES_MAX = 4 * BYTES_MAX
SHOWN_CHARS = 200


@dataclass(frozen=True)
class CodeLook:
    """What the archive has. `wrong`: what no code that prime-train packed has, as predicates; `risks`: files
    that programs run by themselves once the code lies on a disk, as most repositories have some.
    """

    wrong: tuple[str, ...]
    risks: tuple[str, ...]


def look(archive: IO[bytes]) -> CodeLook:
    """Return what is wrong with the archive of a run's code."""
    names: set[str] = set()
    try:
        with uncompressed(archive) as stream:
            wrong = tuple(dict.fromkeys(_wrong(TarReader(stream, headers_max=MEMBERS_MAX), names)))
    except Unsafe as error:
        return CodeLook((f"is not safe to unpack: {neutralized(str(error))}",), ())
    except (*BROKEN, OSError) as error:
        return CodeLook(
            (f"is truncated, damaged or not an archive: {neutralized(str(error)[:SHOWN_CHARS])}",), ()
        )
    left = {path: why for path, why in auto_run_files(sorted(names)).items() if not is_git(path)}
    return CodeLook(
        wrong,
        (f"code.tar.gz: other programs run or obey {len(left)} of its files: {neutralized(summary(left))}",)
        if left
        else (),
    )


def _wrong(reader: TarReader, names: set[str]) -> Iterator[str]:
    """Yield what is wrong with each member, and add the names of all to `names`."""
    size, links = 0, set[str]()
    for member in reader.members():
        size += member.size
        if size > UNPACKED_BYTES_MAX:
            raise Unsafe(f"it has more than {UNPACKED_BYTES_MAX // 2**20} MiB unpacked")
        path = "/".join(part for part in member.name.split("/") if part != ".") or "."
        why = _why(path, member)
        if why:
            yield f"has {neutralized(member.name[:SHOWN_CHARS])!r}, which {why}"
        if path in names and not member.is_folder:
            yield f"has {neutralized(member.name[:SHOWN_CHARS])!r} twice"
        names.add(path)
        if member.is_link:
            links.add(path)
    # A program that unpacks follows the link, in a folder where it may lead to something that was there
    # before.
    yield from (
        f"has {neutralized(one[:SHOWN_CHARS])!r}, which lies behind a link"
        for one in sorted(names)
        if _is_below(one, links)
    )
    if pair := same_but_for_case(names):
        yield (
            f"has {neutralized(pair[0][:SHOWN_CHARS])!r} and {neutralized(pair[1][:SHOWN_CHARS])!r}, "
            "which differ only in case"
        )


def _why(path: str, member: Member) -> str:
    if path == "." and member.is_folder:
        return ""
    if not is_inside(path) or member.name.startswith("/"):
        return "lies outside of its folder"
    if is_git(path):
        return f"is refused: {GIT}"
    if member.is_link and is_git(member.link):
        return f"is a link to {neutralized(member.link[:SHOWN_CHARS])}: {GIT}"
    if member.is_link:
        return (
            ""
            if link_stays_inside(path, member.link)
            else f"is a link out of its folder, to {neutralized(member.link[:SHOWN_CHARS])}"
        )
    if member.kind == tarfile.LNKTYPE:
        return "is a hard link"
    return "" if member.is_file or member.is_folder else "is neither a file, a folder nor a link"


def _is_below(path: str, links: Collection[str]) -> bool:
    return any(str(above) in links for above in PurePosixPath(path).parents)
