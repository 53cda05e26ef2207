"""Corrects a prime-rl config: misspelt and moved settings are put in the places where they were probably
intended.

A misspelt group_size is one mistake. That groups of one learn nothing is only its consequence, and would be
reported as a second finding.
"""

from dataclasses import replace
from itertools import islice

from prime_train.spec.rule import Subject
from prime_train.spec.tree import Listing, Mapping, Node, TreeEntry, find
from prime_train.trainers.prime_rl.rules.rule import settings_of
from prime_train.trainers.prime_rl.rules.schema import find_schema_errors
from prime_train.trainers.prime_rl.rules.schema_errors import Where

MENDED_MAX = 100


def corrected_subject(subject: Subject) -> Subject | None:
    """Return the subject with corrected settings; None if every setting is in its place, or the config is for
    another of prime-rl's commands, whose settings are not known.
    """
    root = (
        corrected_root(subject.trainer.root)
        if subject.trainer is not None and settings_of(subject) is not None
        else None
    )
    return (
        replace(subject, trainer=replace(subject.trainer, root=root))
        if subject.trainer is not None and root is not None
        else None
    )


def corrected_root(root: Mapping) -> Mapping | None:
    """Return the config with corrected settings; None if every setting is in its place."""
    wrong = [
        (error.violation.path, error.corrected)
        for error in islice(find_schema_errors(root), MENDED_MAX)
        if error.corrected
    ]
    corrected = root
    for path, there in wrong:
        node, other = find(root, path), find(corrected, there)
        if isinstance(node, Mapping) and isinstance(other, Mapping):
            corrected = _mapping(corrected, there, _both(other, node))
        elif node is not None and other is None:
            corrected = _mapping(corrected, there, node)
    return corrected if corrected is not root else None


def _both(right: Mapping, wrong: Mapping) -> Mapping:
    """Merge a section that is written under its right name and under a wrong one; the right one's entries
    win.
    """
    return Mapping(
        right.place,
        (*right.entries, *(entry for entry in wrong.entries if right.entry(entry.key) is None)),
        right.size,
    )


def _put(node: Node | None, path: Where, value: Node) -> Node:
    """Return the node with the value put at the path, with tables created as needed. An existing value of
    another type stays.
    """
    match node:
        case _ if not path:
            return value
        case None:
            return _mapping(Mapping(value.place, (), 1), path, value)
        case Mapping():
            return _mapping(node, path, value)
        case Listing() if isinstance(path[0], int) and path[0] < len(node.items):
            items = (
                _put(item, path[1:], value) if at == path[0] else item for at, item in enumerate(node.items)
            )
            return replace(node, items=tuple(items))
        case _:
            return node


def _mapping(node: Mapping, path: Where, value: Node) -> Mapping:
    key = path[0]
    if not isinstance(key, str):
        return node
    entry = node.entry(key)
    below = _put(entry.value if entry is not None else None, path[1:], value)
    others = tuple(other for other in node.entries if other.key != key)
    return Mapping(
        node.place,
        (*others, TreeEntry(key, entry.place if entry is not None else value.place, below)),
        node.size,
    )
