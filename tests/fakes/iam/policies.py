"""What policies allow, by IAM's rules: an explicit refusal wins, and what nothing allows is refused.

Source: AWS, "Policy evaluation logic" and "IAM JSON policy elements". Of conditions only those that this
project writes are known; another one, and an element such as NotAction, is an AssertionError, because a test
must not pass on a policy that was not understood.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

ELEMENTS = frozenset({"Sid", "Effect", "Action", "Resource", "Condition"})
OPERATORS = frozenset({"StringLike", "StringEquals"})


@dataclass(frozen=True)
class Wanted:
    """One action on one resource. `context`: the request's values for conditions, such as `s3:prefix`."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Right:
    """One action of one statement, on one of its resources as the statement writes it."""

    action: str
    resource: str


def parse(document: str | Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the statements of a policy."""
    statements = listed((json.loads(document) if isinstance(document, str) else document)["Statement"])
    for statement in statements:
        assert set(statement) <= ELEMENTS, f"this statement is not understood here: {statement}"
        assert set(statement.get("Condition", {})) <= OPERATORS, (
            f"this condition is not understood here: {statement['Condition']}"
        )
    return statements


def granted(statements: Iterable[Mapping[str, Any]], wanted: Wanted) -> Right | None:
    """Return the right by which the action is allowed, the first where there are several; None if it is
    refused.
    """
    found: Right | None = None
    for statement in statements:
        right = _matching(statement, wanted)
        if right is not None and statement["Effect"] == "Deny":
            return None
        found = found or right
    return found


def rights(statements: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Return all that the statements allow."""
    allowed = [one for one in statements if one["Effect"] == "Allow"]
    return {
        Right(action, resource)
        for one in allowed
        for action in listed(one["Action"])
        for resource in listed(one["Resource"])
    }


def listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _matching(statement: Mapping[str, Any], wanted: Wanted) -> Right | None:
    if not all(
        _holds(name, texts, wanted.context)
        for test in statement.get("Condition", {}).values()
        for name, texts in test.items()
    ):
        return None
    for action in listed(statement["Action"]):
        for resource in listed(statement["Resource"]):
            # Names of actions are the same in upper and lower case; resources are not.
            if _pattern(action.lower()).fullmatch(wanted.action.lower()) and _pattern(resource).fullmatch(
                wanted.resource
            ):
                return Right(action, resource)
    return None


def _holds(name: str, texts: Any, context: Mapping[str, str]) -> bool:
    return name in context and any(_pattern(text).fullmatch(context[name]) for text in listed(texts))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern of IAM: only * and ? are special, and * spans slashes."""
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
