"""The requests of agents to the control plane, as plain functions from request to response: no framework, no clock, no network.

`handle` is `admit` (authentication), `read` (parsing), the store, and `answer`; `parse` is the first two, so that a server can collect many
parsed heartbeats and store them in one transaction (`record`). Both entries, bare and FastAPI, use the same functions.

A refused request never reaches the store, so it changes nothing. Later outcomes are the store's: `fenced` is 409.
"""

from prime_train.control_plane.admission.calls import Request, Response
from prime_train.control_plane.admission.responses import overloaded, refuse, too_large
from prime_train.control_plane.webhook.calls import BootstrapCall, Call, CanaryCall, CommitCall, HeartbeatCall, caller_of
from prime_train.control_plane.webhook.context import WebhookContext
from prime_train.control_plane.webhook.handling import answer, carry_out, fulfil, handle, record
from prime_train.control_plane.webhook.parsing import parse
from prime_train.core.wire import Nonce

__all__ = [
    "BootstrapCall",
    "Call",
    "CanaryCall",
    "CommitCall",
    "HeartbeatCall",
    "Nonce",
    "Request",
    "Response",
    "WebhookContext",
    "answer",
    "caller_of",
    "carry_out",
    "fulfil",
    "handle",
    "overloaded",
    "parse",
    "record",
    "refuse",
    "too_large",
]
