"""Builds responses from pages, with headers that stop browsers from storing, framing or reinterpreting a page, or loading anything into
it.
"""

from prime_train.pages.dashboard.requests import PageResponse
from prime_train.pages.document import content_policy

HEADERS = (
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("content-security-policy", f"{content_policy(is_served=True)}; frame-ancestors 'none'"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("x-robots-tag", "noindex"),
)


def page(status: int, html: str, *more: tuple[str, str]) -> PageResponse:
    """Return the response for a page, with the common headers and `more`."""
    return PageResponse(status, html.encode(), (*HEADERS, *more))
