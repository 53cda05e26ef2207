"""The complete table of rules, and the page that is made of it."""

from collections import Counter
from pathlib import Path

from prime_train.checks.all_rules import all_rules
from prime_train.checks.documentation import markdown
from prime_train.checks.engine import findings_of
from prime_train.spec.finding import CODES, Finding, Severity
from prime_train.spec.rule import Document, Rule, Subject, Violation
from prime_train.spec.toml_tree import read_code

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
SECRET = "hf_" + "x" * 30


def test_every_code_stands_for_one_thing() -> None:
    assert not {
        code: count for code, count in Counter(rule.code for rule in all_rules()).items() if count > 1
    }
    assert not {rule.code for rule in all_rules()} & set(CODES)


def test_every_rule_can_be_printed_and_says_why_and_what_to_do() -> None:
    for rule in all_rules():
        assert Finding(rule.code, rule.title, "a.yaml").code == rule.code
        assert rule.why[-1] in ".!?", rule.code
        assert rule.title
        assert rule.fix


def test_the_page_of_rules_is_fresh() -> None:
    assert PAGE.read_text() == markdown(), "run: prime-train rules --markdown > docs/rules.md"


def subject(text: str) -> Subject:
    return Subject(trainer=Document("a.toml", read_code(text), text), format="prime_rl")


def rule(*violations: Violation, requires: str = "") -> Rule:
    return Rule(
        "HW199", Severity.WARNING, "odd", "It is odd.", "mend it", "hardware", lambda _: violations, requires
    )


def test_a_violation_stands_at_its_value_or_its_key_or_the_part_above() -> None:
    given = subject("# one\n[model]\nname = 'x'\n")
    violations = [
        Violation(path, "odd", document="trainer", on_key=on_key)
        for path, on_key in ((("model", "name"), False), (("model", "name"), True))
    ]
    found = findings_of(
        given, rules=[rule(*violations, Violation(("model", "gone"), "missing", document="trainer"))]
    )
    assert [(finding.line, finding.column, finding.value) for finding in found] == [
        (2, 2, ""),
        (3, 1, "x"),
        (3, 8, "x"),
    ]


def test_a_violation_without_a_remedy_of_its_own_has_the_rules() -> None:
    message = findings_of(
        subject("a = 1\n"),
        rules=[
            rule(
                Violation(("a",), "odd", document="trainer"),
                Violation(("a",), "odder", "other", document="trainer"),
            )
        ],
    )
    assert [finding.fix for finding in message] == ["mend it", "other"]


def test_a_rule_is_queried_of_nothing_but_what_it_requires() -> None:
    violation = Violation(("a",), "odd", document="trainer")
    given = subject("a = 1\n")
    assert [
        bool(findings_of(given, rules=[rule(violation, requires=wanted)]))
        for wanted in ("", "trainer", "prime_rl", "spec", "areal")
    ] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_the_same_violation_is_reported_once() -> None:
    violation = Violation(("a",), "odd", document="trainer")
    assert len(findings_of(subject("a = 1\n"), rules=[rule(violation, violation)])) == 1


def test_a_secret_is_not_repeated() -> None:
    (found,) = findings_of(
        subject(f'a = "{SECRET}"\n'), rules=[rule(Violation(("a",), f"got {SECRET}", document="trainer"))]
    )
    assert SECRET not in repr(found)


def test_findings_of_reading_are_kept_and_ignores_honoured() -> None:
    given = subject("a = 1  # prime-train: ignore[HW101] meant\n")
    found = findings_of(
        given, [Finding("PT020", "a secret", "a.toml", 1), Finding("HW101", "odd", "a.toml", 1)], rules=[]
    )
    assert [finding.code for finding in found] == ["PT020"]
