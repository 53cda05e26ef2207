"""The pages for people, from the app that uvicorn serves too."""

from collections.abc import Mapping
from typing import Any

from mangum import Mangum

from prime_train.server.app import create_app
from prime_train.server.gate import Gate
from prime_train.webhook import Desk


def page(desk: Desk, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    gate = Gate(desk)
    try:
        answer: dict[str, Any] = Mangum(create_app(gate), lifespan="off")(dict(event), context)
    finally:
        gate.close()
    return answer
