"""All pages of the list of machines for rent.

One of the servers behind the route sometimes answers 200 with an empty list. If that were believed, a run
would wait although machines are available; so an empty list is requested again, and finally checked against
the summary, which is another route.
"""

import logging
from collections.abc import Callable
from typing import cast

from prime_train.errors import TemporaryError
from prime_train.http import HttpResponse
from prime_train.providers.prime.client import PAGES_MAX, TITLE, PrimeClient, total_of
from prime_train.providers.prime.models import AvailableMachine
from prime_train.providers.rental.parsing import readable

PATH = "/availability/gpus"
SUMMARY_PATH = "/availability/gpu-summary"
PAGE_ROWS = 100
EMPTY_RETRIES_MAX = 4
EMPTY_PAUSE_S = 2.5

log = logging.getLogger(__name__)


def rows(client: PrimeClient, pause: Callable[[float], None]) -> list[AvailableMachine]:
    """Return every row that could be parsed. Raises TemporaryError if the list is empty although the summary
    names machines, or if no row could be parsed.

    The server filters nothing, so that every unsuitable machine can be reported with its reason. `pause` is
    called with the seconds to wait between attempts.
    """
    found: list[object] = []
    total = 0
    for page in range(1, PAGES_MAX + 1):
        items, reported = _page(client, page, pause)
        total = max(total, reported)
        found += items
        if len(found) >= total:
            break
        if not items:
            log.warning("Prime's list of machines ended after %d of %d", len(found), total)
            break
    if not found and _summary_names_any(client):
        raise TemporaryError(
            "Prime's list of machines is empty, although its summary contains some", delay_s=EMPTY_PAUSE_S
        )
    return readable(AvailableMachine, found, TITLE)


def _page(client: PrimeClient, page: int, pause: Callable[[float], None]) -> tuple[list[object], int]:
    for attempt in range(EMPTY_RETRIES_MAX + 1):
        if attempt:
            pause(EMPTY_PAUSE_S)
        answer = client.get(PATH, {"page": page, "page_size": PAGE_ROWS})
        items = _items(answer)
        if items:
            reported = total_of(answer)
            # Without a total, a page that is not full is the last: asking for an empty one would trigger the
            # retries.
            return items, reported if reported is not None else page * PAGE_ROWS + 1 if len(
                items
            ) >= PAGE_ROWS else 0
    return [], 0


def _items(answer: HttpResponse) -> list[object]:
    match answer.content():
        case {"items": [*items]}:
            return items
        case _:
            raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no list of items")


def _summary_names_any(client: PrimeClient) -> bool:
    """Return whether the summary has any price."""
    content = client.get(SUMMARY_PATH).content()
    kinds = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    sizes = [size for kind in kinds.values() if isinstance(kind, dict) for size in kind.values()]
    places = [place for size in sizes if isinstance(size, dict) for place in size.values()]
    return any(price is not None for place in places if isinstance(place, dict) for price in place.values())
