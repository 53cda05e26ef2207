"""Compare two versions of a config, or a version with the current file."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Advice, Call, Operation
from prime_train.app.home import Home
from prime_train.checks import changes as config_changes
from prime_train.configs.history.version_users import runs_of, users
from prime_train.configs.history.versions import NOW, SavedVersions, Texts, spec_of, versions_of
from prime_train.errors import UsageError
from prime_train.runs.run import Run
from prime_train.spec.reader import redacted

CONTEXT_LINES = 3
LINES_MAX = 5000


@dataclass(frozen=True)
class Side:
    """A config that is compared with another one. `runs`: the runs that used this version; None for the
    current file, which no run can have used yet.
    """

    title: str
    texts: Texts
    runs: tuple[Run, ...] | None = None


@dataclass(frozen=True)
class VersionRow:
    """A line of the comparison. `left` and `right`: line number and text, None if that side has no such line.
    `mark`: shows the kind of change without colours: `<`, `>`, `|` or nothing. A row without sides stands for
    omitted lines.
    """

    left: tuple[int, str] | None
    mark: str
    right: tuple[int, str] | None


@dataclass(frozen=True)
class FileComparison:
    """A file that differs. `rows`: the changed lines with their context; `changes`: the meaning of each
    change, None if a side cannot be read; `judged`: what the rules say of one side only.
    """

    title: str
    rows: tuple[VersionRow, ...]
    changes: tuple[config_changes.ConfigChange, ...] | None
    judged: tuple[config_changes.Judgement, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two sides, and the files that differ, with secrets hidden."""

    before: Side
    after: Side
    files: tuple[FileComparison, ...]

    @property
    def is_same(self) -> bool:
        return self.before.texts == self.after.texts


def compare_versions(home: Home, config: Path, before: str = "", after: str = NOW) -> Comparison:
    """Compare two versions of the config. `before`, `after`: the number or name of a version, `NOW` for the
    current file, or empty for the newest version. Raises UsageError if there is no such version, or a file is
    too long.
    """
    versions = versions_of(home, config)
    saved = versions.all()
    if not saved:
        fix = Advice("save one: ", Call(Operation.SAVE_CONFIG, str(config)))
        raise UsageError(f"{config.stem} has no versions yet", fix=fix)
    used = users(saved, runs_of(home))
    first, second = (_side(versions, text or str(saved[-1].number), used) for text in (before, after))
    return compare(config.name, first, second)


def compare(name: str, before: Side, after: Side) -> Comparison:
    """Compare two sides of the config with this file name, secrets hidden. Raises UsageError for more than
    `LINES_MAX` lines.
    """
    return Comparison(before, after, tuple(_files(name, before.texts, after.texts)))


def rows(before: str, after: str) -> list[VersionRow]:
    """Return the changed lines with their context. Raises UsageError above `LINES_MAX` lines."""
    first, second = (text.splitlines() for text in (before, after))
    if max(len(first), len(second)) > LINES_MAX:
        raise UsageError(f"more than {LINES_MAX:,} lines", fix="compare them with diff")
    found: list[VersionRow] = []
    for number, group in enumerate(
        difflib.SequenceMatcher(None, first, second, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)
    ):
        found += [VersionRow(None, "", None)] if number or group[0][1] or group[0][3] else []
        for kind, start, end, other_start, other_end in group:
            found += _pairs(
                kind, list(enumerate(first, 1))[start:end], list(enumerate(second, 1))[other_start:other_end]
            )
    return found


def _side(versions: SavedVersions, text: str, used: dict[int, tuple[Run, ...]]) -> Side:
    if text == NOW:
        return Side(NOW, versions.now())
    version = versions.find(text)
    return Side(version.title, version.texts, used[version.number])


def _files(name: str, before: Texts, after: Texts) -> Iterator[FileComparison]:
    old, new = redacted(before.config), redacted(after.config)
    if old != new:
        yield FileComparison(name, tuple(rows(old, new)), config_changes.of_config(old, new))
    old, new = redacted(before.trainer or ""), redacted(after.trainer or "")
    if old != new:
        spec = spec_of(after.config) or spec_of(before.config)
        kind = spec.trainer.kind if spec is not None else ""
        changes, judged = config_changes.of_trainer(old, new, kind), config_changes.of_rules(old, new, kind)
        yield FileComparison("the trainer's file", tuple(rows(old, new)), changes, judged)


def _pairs(kind: str, left: list[tuple[int, str]], right: list[tuple[int, str]]) -> Iterator[VersionRow]:
    """Yield rows with the lines side by side; if one side of a change has more lines, the remaining ones get
    rows of their own.
    """
    both = min(len(left), len(right))
    mark = "" if kind == "equal" else "|"
    yield from (VersionRow(old, mark, new) for old, new in zip(left[:both], right[:both], strict=True))
    yield from (VersionRow(old, "<", None) for old in left[both:])
    yield from (VersionRow(None, ">", new) for new in right[both:])
