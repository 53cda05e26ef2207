"""Merging of trees: a file over the one it builds on, arguments over files. Every key and value keeps its own
position.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from prime_train.spec.tree import Listing, Mapping, Node, Scalar, SourcePosition, TreeEntry

KEYS_MAX = 20

_Growing = dict[str, "tuple[SourcePosition, _Growing | Node]"]


def merged(base: Mapping, over: Mapping) -> Mapping:
    """Return both trees merged. `over` wins; if both have a mapping for a key, the two are merged
    recursively. A list in `over` replaces the entire list in `base`.
    """
    entries = {entry.key: entry for entry in base.entries}
    for entry in over.entries:
        there = entries.get(entry.key)
        if there is not None and isinstance(there.value, Mapping) and isinstance(entry.value, Mapping):
            entries[entry.key] = TreeEntry(entry.key, there.place, merged(there.value, entry.value))
        else:
            entries[entry.key] = entry
    return mapping_of(base.place, entries.values())


def nested(path: Sequence[str], node: Node, place: SourcePosition) -> Mapping:
    """Return a tree that contains only this node at `path`; the keys on the way have the position `place`."""
    tree = node
    for key in reversed(path):
        tree = mapping_of(place, [TreeEntry(key, place, tree)])
    assert isinstance(tree, Mapping)
    return tree


def grown(place: SourcePosition, settings: Iterable[tuple[Sequence[str], SourcePosition, Node]]) -> Mapping:
    """Return a tree of settings, each given as a path, the position of its keys, and its value; a later one
    wins. Paths of more than `KEYS_MAX` keys are left out.
    """
    tree: _Growing = {}
    for path, at, value in settings:
        if not 0 < len(path) <= KEYS_MAX:
            continue
        here = tree
        for key in path[:-1]:
            there = here.get(key)
            inner = there[1] if there is not None else None
            if isinstance(inner, Mapping):
                inner = {entry.key: (entry.place, entry.value) for entry in inner.entries}
            if not isinstance(inner, dict):
                inner = {}
            here[key] = (there[0] if there is not None else at, inner)
            here = inner
        here[path[-1]] = (at, value)
    return _frozen(place, tree)


def with_nulls(root: Mapping, word: str) -> Mapping:
    """Return the tree with null for each value of a key that is the text `word`, for formats without a null
    of their own.
    """
    return mapping_of(
        root.place,
        (TreeEntry(entry.key, entry.place, _with_nulls(entry.value, word)) for entry in root.entries),
    )


def _frozen(place: SourcePosition, tree: "_Growing") -> Mapping:
    return mapping_of(
        place,
        (
            TreeEntry(key, at, _frozen(at, node) if isinstance(node, dict) else node)
            for key, (at, node) in tree.items()
        ),
    )


def mapping_of(place: SourcePosition, entries: Iterable[TreeEntry]) -> Mapping:
    kept = tuple(entries)
    return Mapping(place, kept, 1 + sum(entry.value.size for entry in kept))


def _with_nulls(node: Node, word: str) -> Node:
    match node:
        case Scalar():
            return replace(node, value=None) if node.value == word else node
        case Listing():
            items = tuple(
                with_nulls(item, word) if isinstance(item, Mapping) else item for item in node.items
            )
            return replace(node, items=items)
        case Mapping():
            return with_nulls(node, word)
