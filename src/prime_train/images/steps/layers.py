"""Spreads what was installed over the layers of an image, while it is built: python3 layers.py FOLDER TARGET
BYTES COUNT

Moves the files of FOLDER into TARGET/0, TARGET/1 and so on under their full paths, each with at most BYTES of
content, so that copying all of them to / gives FOLDER again. Registries take no layer above 10 GB, and one
large layer is fetched and unpacked by one core. The order is that of the paths, so the same files give the
same layers. A program for the image's Python: only the standard library is imported.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

GIB = 2**30


def spread(folder: Path, target: Path, *, layer_bytes: int, count: int) -> None:
    """Move the files. Raises ValueError, before anything is moved, if a file is larger than a layer or more
    layers are needed.
    """
    placed = list(_placed(folder, layer_bytes=layer_bytes, count=count))
    for number in range(count):
        (target / str(number)).mkdir(parents=True)
    for path in (
        folder,
        *(path for path in sorted(folder.rglob("*")) if path.is_dir() and not path.is_symlink()),
    ):
        # All in the first layer, because some are empty.
        _below(target / "0", path).mkdir(parents=True, exist_ok=True)
    for layer, path in placed:
        moved = _below(target / str(layer), path)
        moved.parent.mkdir(parents=True, exist_ok=True)
        path.rename(moved)


def _placed(folder: Path, *, layer_bytes: int, count: int) -> Iterator[tuple[int, Path]]:
    layer, used = 0, 0
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        size = path.lstat().st_size
        if size > layer_bytes:
            raise ValueError(
                f"{path} has {size / GIB:.1f} GiB, more than the {layer_bytes / GIB:.1f} GiB of a layer; "
                "leave its package out"
            )
        if used + size > layer_bytes:
            layer, used = layer + 1, 0
        if layer >= count:
            raise ValueError(
                f"{count} layers of {layer_bytes / GIB:.1f} GiB are not enough, from {path} on; leave "
                "packages out"
            )
        used += size
        yield layer, path


def _below(layer: Path, path: Path) -> Path:
    return layer / path.relative_to("/")


def main() -> int:
    folder, target, layer_bytes, count = sys.argv[1:]
    try:
        spread(Path(folder), Path(target), layer_bytes=int(layer_bytes), count=int(count))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    time_s = int(os.environ["SOURCE_DATE_EPOCH"])
    for path in (Path(target), *Path(target).rglob("*")):
        os.utime(path, (time_s, time_s), follow_symlinks=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
