"""The dashboard as served by the webhook's function. A function cannot send events to browsers, so browsers reload pages at intervals."""

from collections.abc import Mapping
from typing import Any

from prime_lambdas.deferred_imports import garbage_collection_paused
from prime_lambdas.homes import home_of
from prime_lambdas.secret import masters
from prime_lambdas.settings import Settings
from prime_train.control_plane.dashboard_interface import PageRequest, PageResponse

with garbage_collection_paused():
    from prime_train.dashboard import Dashboard, served_on_call


def dashboard_of(settings: Settings, values: Mapping[str, str]) -> Dashboard:
    """Return the dashboard of the runs in the stack's table. It accepts tokens sealed by any master key in the secret."""
    return served_on_call(home_of(settings, values), masters(values))


def shown(dashboard: Dashboard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dashboard's response to an event of payload version 2.0. Raises ExternalError if the store's time cannot be read."""
    request = _request(event)
    refusal = dashboard.screen(request)
    return _lambda_response(refusal if refusal is not None else dashboard.respond(request))


def _request(event: Mapping[str, Any]) -> PageRequest:
    headers = event.get("headers") or {}
    return PageRequest(
        str(event["requestContext"]["http"]["method"]),
        str(event["rawPath"]),
        str(event.get("rawQueryString") or ""),
        "; ".join(map(str, event.get("cookies") or [headers.get("cookie", "")])),
        is_https=headers.get("x-forwarded-proto") == "https",
    )


def _lambda_response(page: PageResponse) -> dict[str, Any]:
    cookies = {"cookies": [page.cookie]} if page.cookie else {}
    return {"statusCode": page.status, "headers": dict(page.headers), "body": page.body.decode(), "isBase64Encoded": False} | cookies
