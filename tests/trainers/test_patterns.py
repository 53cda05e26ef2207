"""Patterns for a trainer's output: matched in time linear in the line, whatever the line."""

import ast
import re
import threading
from pathlib import Path

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import LogRuleSpec, ProgressSpec, RunSpec
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_rules import of_spec, patterns_of
from prime_train.trainers.of_spec import fired
from prime_train.trainers.patterns import (
    MATCHES_MAX,
    PatternRefused,
    any_of,
    compiled,
    found_in,
    matches,
    refusals,
)
from prime_train.trainers.prime_rl.trainer import RULES
from prime_train.trainers.progress import Progress, reader_for
from tests.backtracking import Ceaseless, steps_of
from tests.builders import spec

ROOT = Path(__file__).parents[2]
TABLE = (*RULES, *BUILT_IN)


@pytest.mark.parametrize(
    "pattern", ["^(a+)+b$", "(a|aa)+$", "(a+a+)+b", r"\d+ validation errors?", "(x+x+)+y"]
)
def test_a_line_that_would_keep_python_for_ever_is_looked_at_at_once(pattern: str) -> None:
    rule = of_spec([LogRuleSpec(pattern=pattern)])[0]
    for character in "a1x":
        assert fired(character * 16_384 + "!", [rule], resumed=False) is None
    assert steps_of(pattern, "a" * 16 + "1" * 200, steps_max=10**6) > 0


def test_every_rule_of_the_tables_is_taken_by_the_linear_engine() -> None:
    assert not list(refusals(rule.pattern for rule in TABLE))
    assert any_of(tuple(rule.pattern for rule in TABLE)) is not None


def test_one_search_over_all_rules_says_what_each_would() -> None:
    for line in (
        "2 validation errors for Config",
        "step 3 loss 2",
        "RuntimeError: CUDA out of memory",
        "Bus error",
    ):
        assert (fired(line, TABLE, resumed=True) is not None) == any(rule.fits(line) for rule in TABLE)


def test_two_rules_that_name_a_group_alike_are_both_looked_for() -> None:
    rules = of_spec(
        [
            LogRuleSpec(pattern="(?P<x>a)b", cause=Cause.GPU_OOM),
            LogRuleSpec(pattern="(?P<x>c)d", cause=Cause.DISK_FULL),
        ]
    )
    assert [found.cause for line in ("ab", "cd") if (found := fired(line, rules, resumed=False))] == [
        Cause.GPU_OOM,
        Cause.DISK_FULL,
    ]


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=x)y", "(?<!x)y", "(?!x)y", "x{2000}", "a\\Z"])
def test_what_cannot_be_matched_in_linear_time_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(PatternRefused, match=r"."):
        compiled(pattern)


def test_a_line_full_of_steps_costs_a_bounded_number_of_searches() -> None:
    assert len(list(matches(r"1(?P<step>\d*)x|1", "1" * 16_384))) == MATCHES_MAX
    reader = reader_for(ProgressSpec(kind="regex", pattern=r"step=(?P<step>\d+)"))
    assert reader.read("step=1 step=22") == Progress(22)
    assert reader.read("größe step=7") == Progress(7)


def test_the_patterns_that_a_user_writes_are_all_known() -> None:
    made = spec(
        health={"log_rules": [{"pattern": "a"}, {"pattern": "b"}]},
        trainer={"command": "x", "progress": {"kind": "regex", "pattern": "(?P<step>c)"}},
    )
    assert isinstance(made, RunSpec)
    assert patterns_of(made) == ("a", "b", "(?P<step>c)")


def test_threads_may_match_at_once() -> None:
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(found_in("(a|b)+c", "ab" * 1000 + "c")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


# ------------------------------------------------------------------------------------------- patterns of our
# own, by Python's engine


def written_patterns() -> list[tuple[str, str]]:
    """Yield every pattern that is written in the code and matched by `re`, with its file."""
    found = []
    for folder in ("src/prime_train", "agent/prime_agent", "lambdas/prime_lambdas"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                    continue
                if not (
                    isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "re"
                    and node.func.attr in USES
                ):
                    continue
                if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                    found.append((node.args[0].value, f"{path.relative_to(ROOT)}:{node.lineno}"))
    return found


USES = {"compile", "search", "match", "fullmatch", "sub", "finditer", "findall", "split"}
REPEATED = 24
"""Initial number of repetitions of a part of a line; then it is doubled."""


def test_no_pattern_of_our_own_explodes() -> None:
    """A pattern whose steps grow faster than the square of the line's length could be abused to block the
    reader.
    """
    patterns = written_patterns()
    assert len(patterns) > 100
    slow = [(where, pattern) for pattern, where in patterns if grows_faster_than_a_square(pattern)]
    assert not slow


def test_what_is_matched_against_a_line_of_the_trainer_by_pythons_engine_is_linear() -> None:
    lines = [
        (where, pattern)
        for pattern, where in written_patterns()
        if where.startswith("src/prime_train/trainers/log_lines.py")
    ]
    assert len(lines) == 3
    assert not [where for where, pattern in lines if grows(pattern, factor=3)]
    assert grows(r"\d+ validation errors?", factor=3)


def test_the_check_for_patterns_that_explode_knows_one() -> None:
    assert grows_faster_than_a_square("^(a+)+b$")
    assert grows_faster_than_a_square("(a|aa)+$")
    assert grows_faster_than_a_square(r"\s*\d*\s*\d*x|\w+\w+\w+!")
    assert not grows_faster_than_a_square(r"^\w+=\d+$")


def grows_faster_than_a_square(pattern: str) -> bool:
    return grows(pattern, factor=6)


def grows(pattern: str, *, factor: int) -> bool:
    """Return whether a line of double length takes more than `factor` times the steps."""
    for part in set(re.findall(r"[A-Za-z0-9]", pattern)[:12]) | set("a1 -_"):
        try:
            once, twice = (
                steps_of(pattern, part * length + "\x00", steps_max=500_000)
                for length in (REPEATED, 2 * REPEATED)
            )
        except Ceaseless:
            return True
        if twice > factor * once + 200:
            return True
    return False
