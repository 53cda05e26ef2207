"""The table of prime-rl's settings, and the timeline beside it: they can be parsed, and agree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prime_train.trainers.prime_rl.reference.prime_rl_timeline import CHANGES, LATER, VERSIONS
from prime_train.trainers.prime_rl.rules.fields import ROOT, FieldUse, Section, ValueKind, below, section
from prime_train.trainers.prime_rl.rules.settings import SHARED, default

MAKER = Path(__file__).with_name("prime_rl_table.py")
DEPTH_MAX = 12


def at(path: str) -> list[FieldUse]:
    """Return the settings of this path; for a section selected by a word, those of all alternatives."""
    parts: list[Section] = [section(ROOT)]
    found: list[FieldUse] = []
    for step in path.split("."):
        if step == "*":
            parts = [
                section(item.text)
                for setting in found
                for kind in setting.kinds
                for item in kind.items
                if item.name == "section"
            ]
            continue
        found = [part.settings[step] for part in parts if step in part.settings]
        if any(setting.kind("any") for setting in found):
            return found
        parts = [inner for setting in found for inner in (*below(setting, None), *all_of(setting))]
    return found


def all_of(setting: FieldUse) -> list[Section]:
    by = setting.kind("by")
    return [section(name) for _, name in by.options] if by is not None else []


@pytest.mark.parametrize("change", CHANGES.values(), ids=lambda change: change.old)
def test_what_has_gone_is_not_there_and_where_it_went_is(change: object) -> None:
    old, to = getattr(change, "old"), getattr(change, "to")  # noqa: B009
    assert not at(old)
    assert not to or at(to)


def test_what_came_later_is_not_there_yet() -> None:
    assert not [path for path in LATER if at(path)]
    assert all(at(before) for before in LATER.values() if before)


def test_what_is_shared_is_there() -> None:
    assert not [path for shared, own in SHARED.items() for path in (shared, *own) if not at(path)]


def test_the_known_version_is_the_newest() -> None:
    assert VERSIONS["559b4477"] == max(VERSIONS.values())
    assert all(change.date <= VERSIONS["559b4477"] for change in CHANGES.values())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("orchestrator.group_size", 1),
        ("trainer.model.optim_cpu_offload", True),
        ("trainer.model.ep", "auto"),
        ("trainer.optim.type", "adamw"),
        ("trainer.weight_broadcast.type", "filesystem"),
        ("deployment.num_train_gpus", 1),
        ("inference.vllm.gpu_memory_utilization", 0.9),
        ("trainer.metrics_server.port", 8000),
        ("trainer.max_steps", None),
        ("trainer.model.nonsense", None),
        ("no.such.section", None),
    ],
)
def test_what_prime_rl_takes_where_nothing_is_reported(path: str, value: object) -> None:
    assert default(path) == value


def test_bounds_hold_their_ends_or_do_not() -> None:
    assert [ValueKind("number", 0, 1).admits(number) for number in (-0.1, 0, 1, 1.1)] == [
        False,
        True,
        True,
        False,
    ]
    assert [
        ValueKind("number", 0, 1, low_open=True, high_open=True).admits(number) for number in (0, 0.5, 1)
    ] == [False, True, False]
    assert ValueKind("int").admits(-(10**9))


def test_a_table_is_made_from_a_schema(tmp_path: Path) -> None:
    inner = {
        "type": "object",
        "additionalProperties": True,
        "properties": {"rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}},
    }
    schema = {
        "$defs": {"lib__trainer__Inner": inner, "Unused": {"type": "object", "properties": {}}},
        "properties": {
            "inner": {"anyOf": [{"$ref": "#/$defs/lib__trainer__Inner"}, {"type": "null"}], "default": None},
            "words": {"items": {"enum": ["a", "b"]}, "type": "array"},
            "steps": {"type": "integer", "minimum": 1, "default": 5},
        },
        "required": ["steps"],
    }
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    made = subprocess.run(
        [sys.executable, MAKER, path, "0123abcd", "2026-01-01"], capture_output=True, text=True, check=True
    ).stdout
    rows = made.split('FIELDS = """\\\n')[1].splitlines()
    assert rows[:5] == [
        "RLConfig",
        "  inner null | @trainer.Inner = null",
        "  words list:'a' | 'b'",
        "  steps int[1..) = 5",
        "trainer.Inner +",
    ]
    assert rows[5:] == ["  rate number(0..1]", '"""']
