"""What every fake of an HTTP API is made of: a server on loopback, routes, a record of the requests, and
faults.

A fake of a new API is its state and its routes, nothing else:

    class FakeCloud(HttpFake):
        prefix = "/v2"  # of every path; routes and records leave it out

        def __init__(self) -> None:
            super().__init__()
            self.pods: dict[int, Pod] = {}

        def get_pod(self, request: Request) -> Json: return self.pods[request.params["pod_id"]].json()  #
        `raise Refusal(json_response(..., 404))` is an answer too

        routes = (Route("GET", "/pods/{pod_id:int}", get_pod),)

    with FakeCloud() as cloud: ...  # cloud.url, .requests, .await_requests("GET", "/pods/1"),
    .fail(LoseResponse(), path="/pods"), .heal()

A check that precedes every route, such as that of a key, overrides `dispatch`; a route that needs more
columns is a subclass of `Route`. Handlers run one at a time, under the fake's `lock`. For answers by script,
without state, there is `ScriptedServer`.
"""

from tests.fakes.http.connections import ConnectionServer
from tests.fakes.http.fake import HttpFake
from tests.fakes.http.faults import (
    ALWAYS,
    TRUNCATED,
    CutRequest,
    Delay,
    Fault,
    Hang,
    LoseResponse,
    Replace,
    Rewrite,
    Rules,
    Stall,
)
from tests.fakes.http.messages import Json, Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.fakes.http.scripted import ScriptedServer

__all__ = [
    "ALWAYS",
    "TRUNCATED",
    "ConnectionServer",
    "CutRequest",
    "Delay",
    "Fault",
    "Hang",
    "HttpFake",
    "Json",
    "LoseResponse",
    "Refusal",
    "Replace",
    "Request",
    "Response",
    "Rewrite",
    "Route",
    "Rules",
    "ScriptedServer",
    "Stall",
    "json_response",
]
