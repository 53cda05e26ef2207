"""No provider is without a test of each strike, unless it is written down why the strike cannot occur
there.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.providers.kinds import PROVIDERS
from tests.adapters.strikes import IMPOSSIBLE, Strike

HERE = Path(__file__).parent


def struck_in_tests() -> Iterator[tuple[str, Strike]]:
    """Yield what the tests of the kill matrices strike."""
    for file in HERE.rglob("test_*kill_matrix.py"):
        names = [node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
        module = importlib.import_module(
            ".".join(("tests.adapters", *file.relative_to(HERE).with_suffix("").parts))
        )
        for name in names:
            for mark in getattr(getattr(module, name), "pytestmark", []):
                if mark.name == "strike":
                    yield from ((provider, mark.args[0]) for provider in mark.args[1:])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_provider_is_struck_by_everything_that_can_happen_there(provider: str) -> None:
    struck = set(struck_in_tests())
    for strike in Strike:
        is_tested, reason = (provider, strike) in struck, IMPOSSIBLE.get((provider, strike), "")
        assert is_tested or reason, (
            f"{provider} has no test in which {strike}, and no reason why that cannot happen"
        )
        assert not (is_tested and reason), f"{provider} is tested although it is said: {reason}"


def test_the_table_and_the_marks_name_no_other_providers() -> None:
    assert {provider for provider, _ in (*IMPOSSIBLE, *struck_in_tests())} <= PROVIDERS.keys()
