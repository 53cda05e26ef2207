"""A client of a cluster's API, as small as the kubelet and the tests need it. It owes nothing to the
product's own.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
ANSWER_S_MAX = 60.0

Thing = dict[str, Any]
"""An object of the API: a pod, a node, a job."""


class Refused(Exception):
    """An answer of the API server that is not a success."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason = status, reason


@dataclass(frozen=True)
class Api:
    """One user's way to the API server. `authority`: the PEM file to trust."""

    url: str
    token: str = field(repr=False)
    authority: Path
    _local: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def get(self, path: str, **query: str) -> Thing:
        return self._json("GET", path, query)

    def find(self, path: str) -> Thing | None:
        """Return the object, or None if there is none."""
        try:
            return self.get(path)
        except Refused as error:
            if error.status != requests.codes.not_found:
                raise
            return None

    def items(self, path: str, **query: str) -> list[Thing]:
        return list(self.get(path, **query)["items"])

    def post(self, path: str, body: Mapping[str, Any], **query: str) -> Thing:
        return self._json("POST", path, query, body)

    def put(self, path: str, body: Mapping[str, Any]) -> Thing:
        return self._json("PUT", path, {}, body)

    def patch(self, path: str, body: Mapping[str, Any], kind: str = STRATEGIC) -> Thing:
        return self._json("PATCH", path, {}, body, kind)

    def delete(self, path: str, **options: Any) -> None:
        """Delete the object; does nothing if there is none. `options` are those of the API, such as
        `gracePeriodSeconds`.
        """
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            self._json("DELETE", path, {}, body)
        except Refused as error:
            if error.status != requests.codes.not_found:
                raise

    def text(self, path: str, **query: str) -> str:
        return self._send("GET", path, query).text

    def watch(self, path: str, version: str, **query: str) -> Iterator[tuple[str, Thing]]:
        """Yield the changes since a version of the list, until the server ends the connection."""
        query |= {"watch": "1", "resourceVersion": version, "timeoutSeconds": "60"}
        with self._send("GET", path, query, stream=True) as answer:
            for line in answer.iter_lines(chunk_size=1):
                event = json.loads(line)
                yield event["type"], event["object"]

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        kind: str = "",
    ) -> Thing:
        answer: Thing = self._send(method, path, query, body, kind).json()
        return answer

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        kind: str = "",
        *,
        stream: bool = False,
    ) -> requests.Response:
        data = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind or "application/json"}
        answer = self._session().request(
            method,
            self.url + path,
            params=query,
            data=data,
            headers=headers,
            stream=stream,
            timeout=ANSWER_S_MAX + 30,
        )
        if answer.status_code >= requests.codes.bad_request:
            raise _refused(answer)
        return answer

    def _session(self) -> requests.Session:
        """Return this thread's session: a session may not be used by two threads at once."""
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.verify, session.trust_env = str(self.authority), False
        return session


def _refused(answer: requests.Response) -> Refused:
    try:
        body = answer.json()
    except ValueError:
        return Refused(answer.status_code, answer.reason, answer.text[:500])
    return Refused(answer.status_code, str(body.get("reason", "")), str(body.get("message", "")))
