"""Valid run specs get no finding, and one mistake in one is reported once, by its code and at its line."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from prime_train.checks.all_rules import by_code
from prime_train.checks.engine import findings_with_ignored
from prime_train.checks.ignores import apply_ignores
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding
from tests.rules.spec_bases import BASES, FILES
from tests.rules.spec_mistakes import BROKEN, Broken
from tests.rules.spec_right import RIGHT, WHOLE

Change = tuple[str, str, str]


def laid_out(folder: Path, base: str, changes: Iterable[Change]) -> Path:
    """Write the config, with its working tree beside it; a trainer's own config is in that tree."""
    texts = FILES | {"": BASES.get(base, base)}
    for file, old, new in changes:
        assert old in texts[file], (file, old)
        texts[file] = texts[file].replace(old, new, 1)
    config = "tree/" + base if base in BASES and base.endswith(".yaml") else "run.yaml"
    texts[config] = texts.pop("")
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return Path(config)


def found(config: Path, folder: Path) -> tuple[Finding, ...]:
    """Return the findings for a user in that folder."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        (loaded,) = load_configs([config])
        more = findings_with_ignored(loaded.subject) if loaded.subject is not None else ()
        return apply_ignores((*loaded.findings, *more), loaded.sources)
    finally:
        os.chdir(here)


def loud(findings: Iterable[Finding]) -> list[Finding]:
    """Return errors and warnings; notes require no action."""
    return [finding for finding in findings if finding.severity != "note"]


@pytest.mark.parametrize("base", sorted(BASES))
def test_every_base_is_right(base: str, tmp_path: Path) -> None:
    assert loud(found(laid_out(tmp_path, base, ()), tmp_path)) == []


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_complete_spec_is_left_alone(name: str, tmp_path: Path) -> None:
    assert loud(found(laid_out(tmp_path, WHOLE[name], ()), tmp_path)) == []


@pytest.mark.parametrize(("base", "changes"), [case[1:] for case in RIGHT], ids=[case[0] for case in RIGHT])
def test_what_is_right_is_left_alone(base: str, changes: tuple[Change, ...], tmp_path: Path) -> None:
    assert loud(found(laid_out(tmp_path, base, changes), tmp_path)) == []


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_one_error_is_reported_once_and_where_it_is(case: Broken, tmp_path: Path) -> None:
    reported = found(laid_out(tmp_path, case.base, case.changes), tmp_path)
    rule = by_code().get(case.code)
    # What is only a note may stand beside other notes; a warning and an error stand alone.
    seen = (
        [each for each in reported if each.code == case.code]
        if rule is not None and rule.severity == "note"
        else loud(reported)
    )
    assert [each.code for each in seen] == [case.code], reported
    lines = (tmp_path / seen[0].file).read_text().split("\n")
    assert lines[seen[0].line - 1].strip() == case.at, seen
