"""Answers of rental APIs with one or more fields damaged, for tests that no damage raises an error of its
own, ends a machine or rents a second one.
"""

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from prime_train.errors import ExternalError
from tests.fakes.http import Response, Rewrite

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**400,
    1e308,
    0.5,
    "",
    "\0",
    "../../account/ssh-keys",
    "-oProxyCommand=touch /tmp/x",
    "\x1b[31mred\u202e",
    "x" * 10_000,
    "N N",
    "2026-13-45T99:00:00Z",
    [],
    {},
    [[]],
    {"id": None},
)


def paths(found: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all fields."""
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from paths(value, (*before, key))


def mutated(body: bytes, chance: random.Random) -> bytes:
    """Return the body with one to three damages; rarely cut off or replaced as a whole."""
    whole = chance.random()
    if whole < 0.04:
        return body[: chance.randrange(len(body) + 1)]
    if whole < 0.06:
        return json.dumps(chance.choice(HOSTILE)).encode()
    content = json.loads(body)
    for _ in range(chance.randint(1, 3)):
        places = list(paths(content))
        if not places:
            break
        *way, last = chance.choice(places)
        parent = content
        for step in way:
            parent = parent[step]
        if chance.random() < 0.2:
            del parent[last]
        else:
            # A copy, because the next damage may be inside of it.
            parent[last] = copy.deepcopy(chance.choice(HOSTILE))
    return json.dumps(content).encode()


def damage(seed: int, path: str, method: str = "GET") -> tuple[Rewrite, dict[str, Any]]:
    chance = random.Random(seed)

    def change(response: Response) -> Response:
        return replace(response, body=mutated(response.body, chance)) if response.body else response

    return Rewrite(change), {"method": method, "path": path, "times": 100}


def outcome(action: Any) -> Any:
    """Return the action's result, or the port's error; any other exception fails the test."""
    try:
        return action()
    except ExternalError as error:
        shown = str(error)
        assert shown.isprintable(), shown
        assert len(shown) < 2_000
        return error
