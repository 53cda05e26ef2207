"""Rules about prime-rl configs with unusual content: they find what they can and never raise."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from prime_train.checks.engine import findings_with_ignored
from prime_train.spec.finding import Finding
from prime_train.spec.merge import mapping_of
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, SourcePosition, TreeEntry
from prime_train.trainers.prime_rl.rules.all_rules import RULES
from prime_train.trainers.prime_rl.rules.fields import ROOT, Section, below, section

HERE = SourcePosition(1, 1)
ODD = st.sampled_from(
    [
        None,
        "None",
        True,
        False,
        0,
        1,
        -1,
        2,
        7.5,
        10**400,
        1e300,
        float("nan"),
        float("inf"),
        "",
        "x",
        "8",
        "a/../b",
        "agg",
    ]
)
DEPTH_MAX = 7


def node(value: Any) -> Node:
    match value:
        case dict():
            return mapping_of(HERE, [TreeEntry(key, HERE, node(inner)) for key, inner in value.items()])
        case list():
            items = tuple(node(item) for item in value)
            return Listing(HERE, items, 1 + sum(item.size for item in items))
        case _:
            return Scalar(HERE, str(value), value)


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    ODD,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id", "a"]), inner, max_size=2)
    ),
    max_leaves=3,
)


def tables(part: Section, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Draw tables of this section with some of its settings, and any values in them."""

    def value(name: str) -> st.SearchStrategy[Any]:
        setting = part.settings[name]
        inner = below(setting, None)
        words = st.sampled_from(
            [*setting.words, *(word for kind in setting.kinds for word, _ in kind.options), "odd"]
        )
        choices = [ODD, ANYTHING, words] + (
            [tables(inner[0], depth + 1)] * 3 if inner and depth < DEPTH_MAX else []
        )
        items = [
            section(item.text) for kind in setting.kinds for item in kind.items if item.name == "section"
        ]
        choices += (
            [st.lists(tables(items[0], depth + 1), max_size=2)] * 3 if items and depth < DEPTH_MAX else []
        )
        return st.one_of(choices)

    names = st.lists(st.sampled_from(sorted(part.settings) or ["none"]), max_size=6, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: value(name) for name in chosen if name in part.settings})
    )


def judged(value: dict[str, Any]) -> tuple[Finding, ...]:
    root = node({"trainer": {}, "orchestrator": {}} | value)
    assert isinstance(root, Mapping)
    return findings_with_ignored(Subject(trainer=Document("rl.toml", root), format="prime_rl"), rules=RULES)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(tables(section(ROOT)))
def test_whatever_stands_in_a_config_is_judged(value: dict[str, Any]) -> None:
    assert all(finding.message and finding.fix for finding in judged(value))


def test_numbers_that_are_none_are_reported_and_not_counted_with() -> None:
    found = judged(
        {
            "max_steps": float("nan"),
            "seq_len": float("inf"),
            "orchestrator": {"batch_size": 10**400, "group_size": 1e300},
        }
    )
    assert [finding.code for finding in found] == ["PR304"] * 3
