"""Access to the pages: a request must contain a valid token, in its URL the first time and in a cookie from then on.

The token in the URL is exchanged for a cookie that scripts cannot read and that browsers do not send with requests from other sites. The
response then leads to the same page without the token, so that the token is neither in the address bar nor in a Referer header. That
response is a page and not an HTTP redirect, because after a link from another site, such as a chat, browsers send such a cookie only with
requests that start at one of the dashboard's own pages.
"""

from collections.abc import Callable
from functools import cache
from http.cookies import CookieError, SimpleCookie

from prime_train.advice import Call, Operation
from prime_train.buckets.keys import is_run_id
from prime_train.pages.dashboard.answers import page
from prime_train.pages.dashboard.requests import RUN_PAGES, PageRequest, PageResponse
from prime_train.pages.document import notice_html
from prime_train.runs.dashboard_token import Link, cookie_name, opened_link
from prime_train.text.invocations import command

TOKEN = "token"
COOKIES_CHARS_MAX = 8192
FIELDS_MAX = 10
REFUSED = "The link is missing, has expired or was changed. Run this where the control plane's key is, to print a new link:"

REVOKED = "Whoever runs the control plane has revoked it. Run this where the control plane's key is, to print a new link:"


def screened(
    masters: tuple[bytes, ...], request: PageRequest, clock: Callable[[], int], is_revoked: Callable[[Link], bool]
) -> PageResponse | None:
    """Return the response to a request that is not a GET, has a token in its URL or has no valid cookie; None for all other requests, which
    may see the page. `masters`: the master keys whose tokens are accepted; `clock`: returns the store's time; `is_revoked`: asks the
    store whether a link was revoked. Raises ExternalError if the store cannot be read."""
    if request.method != "GET":
        return page(405, notice_html("Only read", "These pages are read-only."), ("allow", "GET"))
    brought = _token(request.query)
    if brought is not None:
        link = opened_link(masters, brought, clock)
        if link is None:
            return _refused()
        return _revoked() if is_revoked(link) else _exchanged(masters, request, brought, link.until_s - clock())
    kept = _cookie(request.cookies, cookie_name(masters[0]))
    link = opened_link(masters, kept, clock) if kept else None
    if link is None:
        return _refused()
    return _revoked() if is_revoked(link) else None


def _token(query: str) -> str | None:
    """Return the token in the URL's query, or None if there is none."""
    found = (value for name, _, value in (field.partition("=") for field in query.split("&", FIELDS_MAX)) if name == TOKEN)
    return next(found, None)


@cache
def _refused() -> PageResponse:
    return page(403, notice_html("These pages open with a link", REFUSED, command=command(Call(Operation.DASHBOARD))))


@cache
def _revoked() -> PageResponse:
    return page(403, notice_html("This link was revoked", REVOKED, command=command(Call(Operation.DASHBOARD))))


def _exchanged(masters: tuple[bytes, ...], request: PageRequest, token: str, left_s: int) -> PageResponse:
    """Return the page that sets the cookie and leads to the requested page. Its link is relative, because a proxy may serve the pages below
    a folder."""
    run_id = request.path.removeprefix(RUN_PAGES)
    there = run_id if is_run_id(run_id) else "./"
    secure = "; Secure" if request.is_https else ""
    cookie = f"{cookie_name(masters[0])}={token}; Path=/; Max-Age={left_s}; HttpOnly; SameSite=Strict{secure}"
    return page(200, notice_html("Opening", "The page opens.", leads_to=there))._replace(cookie=cookie)


def _cookie(header: str, name: str) -> str:
    if name not in header or len(header) > COOKIES_CHARS_MAX:
        return ""
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""
