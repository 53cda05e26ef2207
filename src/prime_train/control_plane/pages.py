"""What the dashboard is asked and how it answers, whoever serves it: uvicorn or a Lambda. What the pages show is not decided here."""

from typing import NamedTuple, Protocol

from prime_train.control_plane.admission.calls import Headers

RUN_PAGES = "/runs/"
EVENTS = "/events"
"""Below a run's page: where a browser hears that it has changed."""


class PageRequest(NamedTuple):
    """`cookies`: the header as it came; `is_https`: whether the browser speaks HTTPS, as far as that is known."""

    method: str
    path: str
    query: str
    cookies: str
    is_https: bool = False


class PageResponse(NamedTuple):
    """`cookie`: to be set, as the header has it; empty: none."""

    status: int
    body: bytes
    headers: Headers
    cookie: str = ""


class Pages(Protocol):
    """The dashboard. It is only read: nothing that is asked changes anything."""

    def screen(self, request: PageRequest) -> PageResponse | None:
        """Return the answer to whoever may not see pages or has brought a token, and None to all others. Fast: no run is looked at.
        Raises OutsideError if the time is not known."""

    def respond(self, request: PageRequest) -> PageResponse:
        """Return the answer to a request that passed the screen. It may take seconds. Raises nothing but bugs."""

    def version(self, run_id: str) -> str:
        """Return a text that changes whenever the run's page does; empty if there is no such run. Raises OutsideError."""


def is_page(path: str) -> bool:
    """Return whether the dashboard answers at this path."""
    return path == "/" or path.startswith(RUN_PAGES)
