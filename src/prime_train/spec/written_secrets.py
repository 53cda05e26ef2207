"""Finds secrets written into a config, by the form of a value or the name of its variable. A finding never
repeats a value.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from prime_train.spec.finding import SECRET
from prime_train.spec.finding_drafts import (
    DRAFTS_MAX,
    FindingDraft,
    Listing,
    Mapping,
    Node,
    Scalar,
    TreeEntry,
    scalars,
)
from prime_train.spec.tree import line_with
from prime_train.text.redaction import LOOKS

NAMED_CHARS_MIN = 8

_NAMES = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY)(_?\d+)?$",
    re.IGNORECASE,
)
_SHORT = re.compile(r"(^|_)(PASSWORD|PASSWD)", re.IGNORECASE)
_NO_SECRET = re.compile(
    r"[<${/.~].*|true|false|yes|no|on|off|none|[-+0-9.]*|"
    r"your[-_].*|.*[-_]here|x{3,}|\*{3,}|change[-_]?me|placeholder",
    re.IGNORECASE,
)
"""Values that are not secrets: special tokens such as <pad>, references, paths and switches, and what examples
have in the place of one, such as your-api-key.
"""

_ENVIRONMENTS = frozenset(("environment", "env_vars", "env"))
"""Keys below which configs set environment variables: prime-train's, those of steps after training among
them, and prime-rl's.
"""


def spelled_out(root: Mapping, source: str) -> Iterator[FindingDraft]:
    """Yield a draft for each value that looks like a secret, and for each variable whose name marks it as
    one. `source` is the text of `root`.
    """
    return islice(_drafts(root, source), DRAFTS_MAX)


def _drafts(root: Mapping, source: str) -> Iterator[FindingDraft]:
    named = [(name, entry) for name, entry in _variables(root) if _names_a_secret(entry)]
    yield from (_draft(entry.value, name) for name, entry in named if isinstance(entry.value, Scalar))
    reported = {id(entry.value) for _, entry in named}
    looks = ((value, LOOKS.search(value.text)) for value in scalars(root) if id(value) not in reported)
    yield from (_draft(_at_line(value, found[0], source), None) for value, found in looks if found)


def _at_line(value: Scalar, secret: str, source: str) -> Scalar:
    # What was set over the file stands in no line of it.
    return value if value.place.file else replace(value, place=line_with(source, value.place, secret))


def _variables(node: Node, name: str = "") -> Iterator[tuple[str, TreeEntry]]:
    """Yield every environment variable that is set in the tree, with its full name."""
    for key, inner in _inside(node):
        path = f"{name}.{key}".lstrip(".")
        if key in _ENVIRONMENTS and isinstance(inner, Mapping):
            yield from ((f"{path}.{entry.key}", entry) for entry in inner.entries)
        elif "." in key and key.partition(".")[0] in _ENVIRONMENTS and isinstance(inner, Scalar):
            # a dotted key, as variants set it
            yield (
                path,
                TreeEntry(key.partition(".")[2], inner.place, inner),
            )
        else:
            yield from _variables(inner, path)


def _inside(node: Node) -> Iterator[tuple[str, Node]]:
    match node:
        case Mapping():
            yield from ((entry.key, entry.value) for entry in node.entries)
        case Listing():
            yield from ((str(at), item) for at, item in enumerate(node.items))
        case Scalar():
            return


def _names_a_secret(entry: TreeEntry) -> bool:
    if not isinstance(entry.value, Scalar) or not _NAMES.search(entry.key):
        return False
    text = entry.value.text
    if LOOKS.search(text):
        return True
    enough = bool(text) if _SHORT.search(entry.key) else len(text) >= NAMED_CHARS_MIN
    return enough and " " not in text and not _NO_SECRET.fullmatch(text)


def _draft(value: Scalar, name: str | None) -> FindingDraft:
    what = f"{name} contains a secret" if name else "a value that looks like a secret"
    listed = (
        f"write secrets: [{name.rpartition('.')[2]}]"
        if name
        else "put the name of its variable under secrets"
    )
    fix = (
        f"{listed} and set it where the control plane runs; replace the value that was here, which is "
        "now exposed"
    )
    return FindingDraft(SECRET, value.place, what, fix=fix)
