"""Writes the pointers of a checkpoint (`checkpoints/manifest.py`) beside it, as they were on the machine that
saved it.
"""

import os
import shutil
from pathlib import Path

from prime_train.checkpoints.manifest import Manifest, Pointer
from prime_train.checkpoints.restore import root_of

_DRAFT = ".prime-train-pointer-"


def write_pointers(
    manifest: Manifest, into: Path, *, number: int, tree: Path, replace: bool
) -> tuple[str, ...]:
    """Write the pointers into the folder `into`, in which the checkpoint is, and return their names.

    `number`: the checkpoint's number as the trainer counts; `tree`: the working tree that absolute paths in
    them refer to. Without `replace`, what is there already stays, and is not among the names. Raises OSError.
    """
    written = []
    for pointer in manifest.pointers:
        path = into / pointer.name
        is_there = (path.is_dir() and not path.is_symlink()) or (os.path.lexists(path) and not replace)
        if is_there or (pointer.kind == "copy" and not (root_of(manifest, into) / pointer.of).is_file()):
            continue
        draft = into / f"{_DRAFT}{pointer.name}"
        draft.unlink(missing_ok=True)
        _write(pointer, draft, manifest, into, number=number, tree=tree)
        draft.replace(path)
        written.append(pointer.name)
    return tuple(written)


def _write(pointer: Pointer, path: Path, manifest: Manifest, into: Path, *, number: int, tree: Path) -> None:
    root = root_of(manifest, into)
    match pointer.kind:
        case "text":
            path.write_text(
                pointer.text(number, tree=str(tree), place=str(into.absolute())), encoding="utf-8", newline=""
            )
        case "link":
            path.symlink_to((root / pointer.of if pointer.of else into / manifest.folder).relative_to(into))
        case "copy":
            # Not a link: the trainer may overwrite one of the two in place.
            shutil.copy2(root / pointer.of, path)
