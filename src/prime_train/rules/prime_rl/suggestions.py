"""The right setting of prime-rl for a wrong one: near in spelling, or at home in another section."""

import difflib
from collections.abc import Iterable
from functools import cache

from prime_train.rules.prime_rl.fields import ROOT, Section, section

CLOSE, VERY_CLOSE = 0.75, 0.85
BEGUN_CHARS_MIN = 4
LEVELS_MAX = 8
LISTED_MAX = 15


def word(wrong: str, right: Iterable[str], *, close: float = CLOSE) -> str | None:
    """The one that is nearly the same."""
    return next(iter(difflib.get_close_matches(wrong.lower(), tuple(right), 1, close)), None)


def _begun(wrong: str, right: Iterable[str]) -> str | None:
    """One that the wrong one begins with, or that begins with it."""
    longer = (one for one in right if min(len(one), len(wrong)) >= BEGUN_CHARS_MIN)
    return next((one for one in longer if one.startswith(wrong) or wrong.startswith(one)), None)


def _turned(wrong: str, right: Iterable[str]) -> str | None:
    """One of the same letters: in short names, two that changed places are half of it."""
    return next((one for one in right if sorted(one) == sorted(wrong)), None)


def key(wrong: str, sections: tuple[Section, ...]) -> str | None:
    """A setting of the same section with nearly that name; one of that very name elsewhere; one elsewhere with nearly that name.

    `wrong`: its dotted path.
    """
    leaf = wrong.rsplit(".", 1)[-1].lower()
    names = tuple(name for part in sections for name in part.settings)
    here = word(leaf, names) or _begun(leaf, names) or _turned(leaf, names)
    if here is not None:
        return here
    nearly = difflib.get_close_matches(leaf, _leaves(), 1, VERY_CLOSE)
    paths = _leaves()[nearly[0]] if nearly else ()
    return min(paths, key=lambda path: (path.count("."), -_shared(path, wrong), path.startswith("orchestrator"), path), default=None)


def listed(sections: tuple[Section, ...]) -> str:
    """What there is in its place, where nothing is near."""
    names = sorted(name for part in sections for name in part.settings)
    return f"known here: {', '.join(names[:LISTED_MAX])}{', ...' if len(names) > LISTED_MAX else ''}"


def _shared(one: str, other: str) -> int:
    """Steps from the root that two paths have in common."""
    pairs = list(zip(one.split("."), other.split("."), strict=False))
    return next((at for at, (left, right) in enumerate(pairs) if left != right), len(pairs))


@cache
def _leaves() -> dict[str, tuple[str, ...]]:
    """Every name of a setting and the paths that end in it."""
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
