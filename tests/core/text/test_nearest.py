"""Suggestions of the intended name, by one function."""

import ast
from pathlib import Path

import pytest

from prime_train.text.nearest import CLOSE, POSSIBLE, SURE, VERY_CLOSE, nearest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("stpes", ("steps", "seed", "command"), ("steps",)),
        ("STEPS", ("Steps", "seed"), ("Steps",)),
        ("zzz", ("steps", "seed"), ()),
        ("steps", (), ()),
    ],
)
def test_the_most_similar_name_is_suggested_as_it_is_written(
    name: str, known: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert nearest(name, known) == found


def test_the_more_rests_on_a_guess_the_more_alike_names_must_be() -> None:
    assert POSSIBLE < CLOSE < VERY_CLOSE < SURE
    found = [
        nearest("gpu_memory", ("gpu_memory_utilization",), likeness=likeness)
        for likeness in (POSSIBLE, CLOSE, VERY_CLOSE, SURE)
    ]
    assert [bool(one) for one in found] == [True, False, False, False]


def test_no_other_module_compares_names_for_itself() -> None:
    allowed = {
        "text/nearest.py",
        "configs/commands/side_by_side.py",
        "checks/compare_versions.py",
        "outputs/diff.py",
        "github/setup/files.py",
        "rehearsal/script_lines.py",
    }
    files = {
        path: path.relative_to(ROOT / "src/prime_train").as_posix()
        for path in (ROOT / "src/prime_train").rglob("*.py")
    }
    found = {
        name
        for path, name in files.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if _imports_difflib(node)
    }
    assert found == allowed


def _imports_difflib(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name == "difflib" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and node.module == "difflib"
