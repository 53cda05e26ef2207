"""Paths with parameters, and their handlers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

_KINDS = {"str": r"[^/]+", "int": r"\d+", "path": r".+"}


@dataclass(frozen=True)
class Route:
    """A route. `method`: one, or several with `|` between them. `template`: a path in which `{name}` is one
    segment, `{name:int}` a number, and `{name:path}` may contain slashes. `handler` gets the fake and the
    request, and returns a `Response` or an object to be sent as JSON.
    """

    method: str
    template: str
    handler: Callable[..., Any]

    @cached_property
    def _names(self) -> dict[str, str]:
        """Return the kind of each parameter."""
        return {name: kind or "str" for name, kind in re.findall(r"\{(\w+):?(\w*)\}", self.template)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"\{(\w+)(?::\w+)?\}", self.template)
        kinds = [
            f"(?P<{piece}>{_KINDS[self._names[piece]]})" if at % 2 else re.escape(piece)
            for at, piece in enumerate(pieces)
        ]
        return re.compile("".join(kinds))

    def match(self, path: str) -> dict[str, Any] | None:
        """Return the parameters, unescaped and converted to their kinds; None if the path does not match."""
        found = self._pattern.fullmatch(path)
        if found is None:
            return None
        values = {name: unquote(value) for name, value in found.groupdict().items()}
        return {name: int(value) if self._names[name] == "int" else value for name, value in values.items()}

    def match_request(self, method: str, path: str) -> dict[str, Any] | None:
        return self.match(path) if method in self.method.split("|") else None
