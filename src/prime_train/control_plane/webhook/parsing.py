"""From a request to the call in it, or to the refusal: admitted at the door, then read. Asks nobody, never raises.

The checks, in this order: size, path, method, form of the headers, clock, signature, body, body against path.
"""

from pydantic import ValidationError

from prime_train.control_plane.admission.admission import admit
from prime_train.control_plane.admission.calls import Place, Request, Response
from prime_train.control_plane.admission.keyring import Keyring
from prime_train.control_plane.admission.responses import refuse
from prime_train.control_plane.webhook.bodies import PARSERS, InvalidBody, describe
from prime_train.control_plane.webhook.calls import Call


def parse(keyring: Keyring, request: Request) -> Response | Call:
    """The call in a request, or the response that refuses it. Asks nobody and never raises."""
    admitted = admit(keyring, request)
    return read(admitted, request) if isinstance(admitted, Place) else admitted


def read(place: Place, request: Request) -> Response | Call:
    """The call in the body of a request that was admitted to that place."""
    try:
        return PARSERS[place.verb](place, request.body)
    except ValidationError as error:
        return refuse(422, describe(error), request.now_s)
    except InvalidBody as error:
        return refuse(422, str(error), request.now_s)
