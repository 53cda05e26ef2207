"""Turns a request into a call or a refusal: first admission, then parsing. Reads no store, never raises.

The checks, in this order: size, path, method, form of the headers, clock, signature, body, body against path.
"""

from pydantic import ValidationError

from prime_train.control_plane.admission.authenticate import admit
from prime_train.control_plane.admission.calls import Request, RequestTarget, Response
from prime_train.control_plane.admission.keyring import Keyring
from prime_train.control_plane.admission.responses import refuse
from prime_train.control_plane.webhook.bodies import PARSERS, InvalidBody, describe
from prime_train.control_plane.webhook.calls import Call


def parse(keyring: Keyring, request: Request) -> Response | Call:
    """Return the call in a request, or the response that refuses it. Reads no store and never raises."""
    admitted = admit(keyring, request)
    return read(admitted, request) if isinstance(admitted, RequestTarget) else admitted


def read(place: RequestTarget, request: Request) -> Response | Call:
    """Return the call in the body of a request that was admitted to `place`, or a refusal."""
    try:
        return PARSERS[place.verb](place, request.body)
    except ValidationError as error:
        return refuse(422, describe(error), request.now_s)
    except InvalidBody as error:
        return refuse(422, str(error), request.now_s)
