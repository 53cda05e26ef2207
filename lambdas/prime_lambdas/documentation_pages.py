"""The API's documentation pages for people, made by the same app that uvicorn serves. API calls themselves never pass through this
module."""

import time
from collections.abc import Mapping
from typing import Any

from prime_lambdas.deferred_imports import garbage_collection_paused, parsers_deferred
from prime_train.control_plane.admission.calls import Response
from prime_train.control_plane.admission.responses import refuse

with garbage_collection_paused(), parsers_deferred():
    from mangum import Mangum

    from prime_train.control_plane.server.app import create_app
    from prime_train.control_plane.server.body import Receive, Scope
    from prime_train.control_plane.server.responder import Responder


class Nobody(Responder):
    """Responder that answers every call with 404, because API calls are served elsewhere."""

    async def respond(self, scope: Scope, receive: Receive) -> Response:
        return refuse(404, "there is no such page", int(time.time()))


def page(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Return the response to an event that requests a documentation page."""
    answer: dict[str, Any] = Mangum(create_app(Nobody()), lifespan="off")(dict(event), context)
    return answer
