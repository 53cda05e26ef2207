"""RunPod's spot machines, which only its older API, GraphQL, has: what to bid for them, and the call that
rents one.

Neither RunPod's pages about prices nor version 2 of its API mention spot machines any more, so that this part
of GraphQL may end on any day. A pod that was rented by it is listed and terminated by version 2 like every
other one. It is interrupted without notice, when somebody bids more or rents the machine on-demand; it has
exited then.
"""

import re
from collections.abc import Sequence

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import HttpResponse
from prime_train.providers.rental.parsing import parsed, readable
from prime_train.providers.rental.reasons import answered
from prime_train.providers.runpod.errors import GRAPHQL_REFUSALS, graphql_reason_in
from prime_train.providers.runpod.models import Interruptible, KindWithBid, RunPodPod
from prime_train.providers.runpod.settings import TITLE

RENT = (
    "mutation Rent($input: PodRentInterruptableInput!) { podRentInterruptable(input: $input) { id "
    "name "
    "costPerHr } }"
)

_OUR_FAULT = re.compile(
    r"cannot query|unknown (?:type|argument|field)|not defined by|variable |syntax error|unauthor|forbidden",
    re.IGNORECASE,
)


def bids_query(count: int, cloud: str) -> str:
    """Return the query for the lowest bid for one GPU of each kind, in machines with `count` of them."""
    secure = "true" if cloud == "SECURE" else "false"
    return (
        f"query {{ gpuTypes {{ id lowestPrice(input: {{gpuCount: {count}, secureCloud: {secure}}}) "
        f"{{ "
        f"minimumBidPrice stockStatus }} }} }}"
    )


def bids_in(answer: HttpResponse) -> dict[str, float]:
    """Return the lowest bids in USD for one GPU and hour, by kind, of what is not sold out. Raises
    PermanentError if the query was refused, TemporaryError if the response cannot be parsed.
    """
    rows = _data(answer, "gpuTypes")
    if not isinstance(rows, list):
        raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no list of gpuTypes")
    kinds: Sequence[KindWithBid] = readable(KindWithBid, rows, TITLE)
    return {kind.id: kind.bid_usd for kind in kinds if kind.bid_usd > 0}


def rented_in(answer: HttpResponse, name: str) -> RunPodPod:
    """Return the pod in the response to `RENT`. NoCapacity, NoFunds and PermanentError guarantee that nothing
    was rented.
    """
    content = _data(answer, "podRentInterruptable", is_create=True)
    if content is None:
        raise TemporaryError(f"{answer.what}: the answer names no pod")
    pod = parsed(Interruptible, content, answer.what)
    return RunPodPod(id=pod.id, name=pod.name or name, status="PROVISIONING", cost=pod.cost_per_hr)


def _data(answer: HttpResponse, field: str, *, is_create: bool = False) -> object:
    """Return the field of what GraphQL answers, which sends its refusals with status 200, too. What is not
    known to be a refusal proves nothing about pods."""
    match answer.content():
        case {"errors": [{"message": str()}, *_]}:
            reason = graphql_reason_in(answer)
            if _OUR_FAULT.search(reason):
                raise PermanentError(f"{answered(answer, reason)}; {TITLE} may have ended its spot machines")
            raise (GRAPHQL_REFUSALS.create_error(answer) if is_create else None) or TemporaryError(
                answered(answer, reason)
            )
        case {"data": dict(data)} if field in data:
            return data[field]
        case _:
            raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no {field}")
