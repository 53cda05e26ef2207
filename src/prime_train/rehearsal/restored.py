"""A checkpoint laid into a working tree, as a new machine gets it."""

import re
import shutil
from pathlib import Path, PurePosixPath

from prime_train.rehearsal.saves import Beside, Save, SavesSeen


def restore(save: Save, saves: SavesSeen, source: Path, target: Path) -> None:
    """Lay the checkpoint and what points to it into a tree, as a new machine gets them. Raises OSError if
    `source` does not have it any more.
    """
    if saves.is_folder:
        _make_folder((target / save.path).parent, target)
        shutil.copytree(
            source / save.path, target / save.path, symlinks=True, dirs_exist_ok=True, ignore=_no_files
        )
    for path in dict.fromkeys(one.path for one in save.members):
        if not saves.is_folder or not path.startswith(save.path + "/"):
            _copy(source / path, target / path, target)
    for beside in saves.beside:
        if beside.kind != "best":
            _make_folder((target / beside.path).parent, target)
            _lay_beside(beside, save, source, target)


def _lay_beside(beside: Beside, save: Save, source: Path, target: Path) -> None:
    """Lay what is beside the checkpoints, as it is once this one is the newest: it may have been written
    later than the checkpoint, when this was copied already.
    """
    before, after = source / beside.path, target / beside.path
    match beside.kind:
        case "pointer":
            text = before.read_text(encoding="utf-8") if before.is_file() else beside.text
            text = text.replace(str(source), str(target))
            after.write_text(_inside(pointing_to(text, save), save, target), encoding="utf-8")
        case "link":
            named = str(before.readlink()) if before.is_symlink() else beside.text
            after.unlink(missing_ok=True)
            after.symlink_to(_inside(pointing_to(named, save), save, target))
        case "copy" if (same := _same_as(beside, save)) is not None:
            _copy(source / same, after, target)
        case _:
            _copy(before, after, target)


def pointing_to(text: str, save: Save) -> str:
    """Return the text of a pointer with the number of this save in place of another one's."""
    if save.number is None:
        return text
    name = PurePosixPath(save.path).name
    found = re.search(rf"(?P<before>.*?)(?P<number>(?<!\d)0*{save.number})(?!\d)", name)
    if found is None:
        return text
    if text.strip().isdigit():
        padded = f"{save.number:0{len(text.strip()) if text.strip().startswith('0') else 0}d}"
        return text.replace(text.strip(), padded)
    return re.sub(
        rf"(?<![^\s/\"'=:,]){re.escape(found['before'])}\d+(?!\d)",
        lambda _: found["before"] + found["number"],
        text,
    )


def _inside(text: str, save: Save, tree: Path) -> str:
    """Return the text with absolute paths to checkpoints leading into this tree."""
    folder = str(PurePosixPath(save.path).parent)
    place = rf"(?={re.escape(folder)}/)" if folder != "." else rf"(?={re.escape(save.path)})"
    return re.sub(rf"(?<![^\s\"'=:,])/[^\s\"']*?/{place}", lambda _: f"{tree}/", text)


def _same_as(beside: Beside, save: Save) -> str | None:
    """Return the file of the checkpoint whose bytes a copy has; None if several may be."""
    paths = list(dict.fromkeys(one.path for one in save.members))
    named = [path for path in paths if PurePosixPath(path).name == PurePosixPath(beside.path).name]
    return paths[0] if len(paths) == 1 else named[0] if len(named) == 1 else None


def _copy(source: Path, target: Path, tree: Path) -> None:
    _make_folder(target.parent, tree)
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
    elif source.exists():
        shutil.copy2(source, target)


def _make_folder(folder: Path, tree: Path) -> None:
    """Make a folder inside a tree. Raises OSError if a link in the tree leads out of it."""
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.resolve().is_relative_to(tree.resolve()):
        raise OSError(f"{folder} leads out of {tree}")


def _no_files(folder: str, names: list[str]) -> list[str]:
    """Return the names of what cannot be copied: sockets, pipes and devices."""
    return [
        name
        for name in names
        if (path := Path(folder, name)).exists()
        and not (path.is_symlink() or path.is_file() or path.is_dir())
    ]
