"""Notices that a provider sends of itself, such as that a machine is about to be taken away: signed with a
secret of their own.

A notice is never believed: it only says which machine to look at now. What is decided is decided by what the
provider answers then, and by heartbeats.
"""

import hashlib
import hmac
import json
import re
from typing import NamedTuple

from prime_train.webhook.keyring import Keyring
from prime_train.webhook.requests import Request
from prime_train.webhook.responses import Refused, nothing_here

VAST = "vast"
VAST_PATH = "/v1/notices/vast"
EVENT_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER = (
    "x-vast-event-id",
    "x-vast-timestamp",
    "x-vast-signature-256",
)
HEADERS = (EVENT_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
AGE_S_MAX = 300
"""How far the time of a notice may differ from the server's, in seconds: a recorded one must not be of use
for long.
"""
SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
TIMESTAMP = re.compile(r"[0-9]{1,12}")
EVENT = re.compile(r"[\x21-\x7e]{1,128}")
WAKING = frozenset({"outbid", "instance_stopped", "instance_offline"})
"""The kinds of notices after which a machine is looked at; others are accepted, and nothing follows from
them.
"""

_INSTANCE = re.compile(r"instance #?([1-9][0-9]{0,14})\b", re.IGNORECASE)


class NoticeCall(NamedTuple):
    """A notice with a valid signature. `event`: its id, the same each time it is sent. `wakes`: a machine is
    to be looked at; `pod_id`: which one, by the provider's id; empty if the notice does not tell.
    """

    provider: str
    event: str
    wakes: bool
    pod_id: str = ""


def read_notice(keyring: Keyring, request: Request) -> NoticeCall:
    """Return the notice in a request to `VAST_PATH`. Raises Refused unless one of the secrets has signed
    it.
    """
    secrets = keyring.notice_secrets
    if not secrets:
        raise nothing_here()
    if request.method != "POST":
        raise Refused(405, "notices need POST", (("allow", "POST"),))
    _authenticate(secrets, request)
    event = request.headers.get(EVENT_HEADER, "")
    match _content(request.body):
        case {"event_id": str(event_id), "notif_type": str(kind)} as content if (
            event_id == event and EVENT.fullmatch(event)
        ):
            return NoticeCall(VAST, event, kind in WAKING, _instance_in(content))
        case _:
            raise Refused(
                422, f"the body must be a notice with notif_type, and with the event_id of {EVENT_HEADER}"
            )


def _authenticate(secrets: tuple[str, ...], request: Request) -> None:
    """Raise Refused unless one of the secrets has signed the notice."""
    stamped, given = request.headers.get(TIMESTAMP_HEADER, ""), request.headers.get(SIGNATURE_HEADER, "")
    if not TIMESTAMP.fullmatch(stamped) or not SIGNATURE.fullmatch(given):
        raise Refused(
            401,
            f"{TIMESTAMP_HEADER} (whole seconds) and {SIGNATURE_HEADER} (sha256=<64 hex digits>) are "
            "required",
        )
    if abs(request.now_s - int(stamped)) > AGE_S_MAX:
        raise Refused(
            401,
            f"the notice was signed {request.now_s - int(stamped)} s ago, more than {AGE_S_MAX} s from now",
        )
    for secret in secrets:
        made = hmac.new(secret.encode(), stamped.encode() + b"." + request.body, hashlib.sha256).hexdigest()
        if hmac.compare_digest(f"sha256={made}", given):
            return
    raise Refused(401, "the signature of the notice is not valid")


def _content(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _instance_in(content: object) -> str:
    """Return the id of the machine: from the data, or else from the subject, which has had it when the data
    did not; empty if neither tells.
    """
    match content:
        case {"data": {"instance_id": int(number)}} if not isinstance(number, bool) and 0 < number < 10**15:
            return str(number)
        case {"data": {"instance_id": str(text)}} if re.fullmatch("[1-9][0-9]{0,14}", text):
            return text
        case {"subject": str(subject)}:
            found = _INSTANCE.search(subject[:500])
            return found[1] if found else ""
        case _:
            return ""
