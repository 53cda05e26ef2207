"""Suggests the right setting of prime-rl for a wrong one: similar in spelling, or in another section."""

from collections.abc import Iterable
from functools import cache

from prime_train.text.nearest import VERY_CLOSE, nearest
from prime_train.trainers.prime_rl.rules.fields import ROOT, Section, section

BEGUN_CHARS_MIN = 4
LEVELS_MAX = 8
LISTED_MAX = 15


def _begun(wrong: str, right: Iterable[str]) -> str | None:
    """Return the name of a setting of which the wrong name is a prefix, or which is a prefix of the wrong
    name; None if there is none.
    """
    longer = (one for one in right if min(len(one), len(wrong)) >= BEGUN_CHARS_MIN)
    return next((one for one in longer if one.startswith(wrong) or wrong.startswith(one)), None)


def _same_letters(wrong: str, right: Iterable[str]) -> str | None:
    """Return a name with the same letters in another order, or None; two swapped letters change too much of a
    short name for `nearest`.
    """
    return next((one for one in right if sorted(one) == sorted(wrong)), None)


def key(wrong: str, sections: tuple[Section, ...]) -> str | None:
    """Return a setting of the same section with a similar name, otherwise the path of one in another section
    with an equal or similar name.

    `wrong` is the setting's dotted path. None if nothing is similar.
    """
    leaf = wrong.rsplit(".", 1)[-1].lower()
    names = tuple(name for part in sections for name in part.settings)
    here = next(iter(nearest(leaf, names)), None) or _begun(leaf, names) or _same_letters(leaf, names)
    if here is not None:
        return here
    nearly = nearest(leaf, _leaves(), likeness=VERY_CLOSE)
    paths = _leaves()[nearly[0]] if nearly else ()
    return min(
        paths,
        key=lambda path: (path.count("."), -_shared(path, wrong), path.startswith("orchestrator"), path),
        default=None,
    )


def listed(sections: tuple[Section, ...]) -> str:
    """Return the list of known settings as text, for a name without a similar one."""
    names = sorted(name for part in sections for name in part.settings)
    return f"known here: {', '.join(names[:LISTED_MAX])}{', ...' if len(names) > LISTED_MAX else ''}"


def _shared(one: str, other: str) -> int:
    """Return how many steps from the root two paths have in common."""
    pairs = list(zip(one.split("."), other.split("."), strict=False))
    return next((at for at, (left, right) in enumerate(pairs) if left != right), len(pairs))


@cache
def _leaves() -> dict[str, tuple[str, ...]]:
    """Return every name of a setting with the paths that end in it."""
    found: dict[str, list[str]] = {}
    level = [("", ROOT)]
    for _ in range(LEVELS_MAX):
        deeper: list[tuple[str, str]] = []
        for path, name in level:
            for setting in section(name).settings.values():
                here = f"{path}.{setting.name}".lstrip(".")
                found.setdefault(setting.name, []).append(here)
                kinds = [inner for kind in setting.kinds for inner in (kind, *kind.items)]
                deeper += [(here, kind.text) for kind in kinds if kind.name == "section"]
                deeper += [(here, to) for kind in kinds if kind.name == "by" for _, to in kind.options]
        level = deeper
    return {name: tuple(dict.fromkeys(paths)) for name, paths in found.items()}
