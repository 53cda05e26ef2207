"""The interface between the dashboard and its server, which is `serve` or a Lambda: requests, responses, and
the protocol `Pages`. The content of the pages is decided elsewhere.
"""

from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, str], ...]


RUN_PAGES = "/runs/"
EVENTS = "/events"
"""Path below a run's page at which a browser receives an event whenever the page has changed."""


class PageRequest(NamedTuple):
    """A request for a page. `cookies`: the Cookie header, unparsed; `is_https`: whether the browser uses
    HTTPS, as far as that is known.
    """

    method: str
    path: str
    query: str
    cookies: str
    is_https: bool = False


class PageResponse(NamedTuple):
    """The response to a page request. `cookie`: the value of a Set-Cookie header; empty: no cookie is set."""

    status: int
    body: bytes
    headers: Headers
    cookie: str = ""


class Pages(Protocol):
    """The dashboard. It is read-only: no request changes anything."""

    def screen(self, request: PageRequest) -> PageResponse | None:
        """Return the response to a request that is not a GET, has a token in its URL or has no valid cookie;
        None for all other requests, which may see the page. Fast: no run is read. Raises ExternalError if the
        store's time cannot be read.
        """

    def respond(self, request: PageRequest) -> PageResponse:
        """Return the response to a request for which `screen` returned None. It may take seconds. Raises no
        expected exception.
        """

    def version(self, run_id: str) -> str:
        """Return a text that changes whenever the run's page does; empty if there is no such run. Raises
        ExternalError if the store cannot be read.
        """
