"""The differences between two sets of versions of a run's outputs, as text."""

from collections.abc import Callable, Iterator, Sequence

from prime_train.outputs.manifest import OutputChange, OutputVersion
from prime_train.text.formatting import size
from prime_train.text.safe import neutralized


def diff_lines(
    before: str, after: str, changes: Sequence[OutputChange], text_of: Callable[[OutputChange], Sequence[str] | None]
) -> Iterator[str]:
    """Yield a line for each change, then its unified diff if `text_of` returns one. `before` and `after` describe what was compared."""
    yield f"{before} -> {after}: {len(changes)} file{'' if len(changes) == 1 else 's'} differ{'s' if len(changes) == 1 else ''}"
    for change in changes:
        yield f"{change.kind:<8} {neutralized(change.path)}  {_size(change.before)} -> {_size(change.after)}"
        yield from map(neutralized, text_of(change) or ())


def _size(version: OutputVersion | None) -> str:
    return size(version.file.size) if version is not None else "none"
