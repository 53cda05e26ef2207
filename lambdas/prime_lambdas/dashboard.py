"""The dashboard as the webhook's function shows it. A function cannot tell a browser that something has changed, so the browser asks."""

from collections.abc import Mapping
from typing import Any

from prime_lambdas.homes import home_of
from prime_lambdas.loading import uncollected
from prime_lambdas.secret import masters
from prime_lambdas.settings import Settings
from prime_train.control_plane.pages import PageRequest, PageResponse

with uncollected():
    from prime_train.dashboard import Dashboard, served_on_call


def dashboard_of(settings: Settings, values: Mapping[str, str]) -> Dashboard:
    """Return the dashboard of the runs in the stack's table; all master keys in the secret open it."""
    return served_on_call(home_of(settings, values), masters(values))


def shown(dashboard: Dashboard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an event of payload version 2.0. Raises OutsideError if the time cannot be had."""
    request = _request(event)
    refusal = dashboard.screen(request)
    return _said(refusal if refusal is not None else dashboard.respond(request))


def _request(event: Mapping[str, Any]) -> PageRequest:
    headers = event.get("headers") or {}
    return PageRequest(
        str(event["requestContext"]["http"]["method"]),
        str(event["rawPath"]),
        str(event.get("rawQueryString") or ""),
        "; ".join(map(str, event.get("cookies") or [headers.get("cookie", "")])),
        is_https=headers.get("x-forwarded-proto") == "https",
    )


def _said(page: PageResponse) -> dict[str, Any]:
    cookies = {"cookies": [page.cookie]} if page.cookie else {}
    return {"statusCode": page.status, "headers": dict(page.headers), "body": page.body.decode(), "isBase64Encoded": False} | cookies
