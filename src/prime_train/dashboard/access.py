"""Who may see the pages: whoever brings a token, in a link once and in a cookie from then on.

The link's token becomes a cookie that no script reads and that no other site's request carries; the answer leads on to the same page
without the token, so that it stays neither in the address bar nor in what a next page hears of where one came from. That answer is a page
and not a redirect of HTTP: a browser that follows a link from another site, such as a chat, sends such a cookie only with requests that
begin at a page of ours.
"""

from collections.abc import Callable
from functools import cache
from http.cookies import CookieError, SimpleCookie

from prime_train.control_plane.pages import RUN_PAGES, PageRequest, PageResponse
from prime_train.core.access.dashboard_token import cookie_name, opens_until_s
from prime_train.core.keys import is_run_id
from prime_train.dashboard.answers import page
from prime_train.reports.pages.document import notice_html

TOKEN = "token"
COOKIES_CHARS_MAX = 8192
FIELDS_MAX = 10
REFUSED = "The link is missing, has expired or was changed. Where the control plane's key is, this prints a new one:"


def screened(masters: tuple[bytes, ...], request: PageRequest, clock: Callable[[], int]) -> PageResponse | None:
    """Return the answer to whoever may not see pages or has brought a token, and None to all others. `masters`: the keys whose tokens are
    taken; `clock`: the store's. Raises OutsideError if the time is not known."""
    if request.method != "GET":
        return page(405, notice_html("Only read", "These pages can be read, and nothing else."), ("allow", "GET"))
    brought = _token(request.query)
    if brought is not None:
        until_s = opens_until_s(masters, brought, clock)
        return _exchanged(masters, request, brought, until_s - clock()) if until_s is not None else _refused()
    kept = _cookie(request.cookies, cookie_name(masters[0]))
    return None if kept and opens_until_s(masters, kept, clock) is not None else _refused()


def _token(query: str) -> str | None:
    """Return the token in the query of a link, or None if there is none."""
    found = (value for name, _, value in (field.partition("=") for field in query.split("&", FIELDS_MAX)) if name == TOKEN)
    return next(found, None)


@cache
def _refused() -> PageResponse:
    return page(403, notice_html("These pages open with a link", REFUSED, command="prime-train dashboard"))


def _exchanged(masters: tuple[bytes, ...], request: PageRequest, token: str, left_s: int) -> PageResponse:
    """Return the page that sets the cookie and leads on. The way on is relative, because a proxy may serve the pages below a folder."""
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
