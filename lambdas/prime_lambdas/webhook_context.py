"""The complete webhook for the Lambda, which handles everything except plain heartbeats."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from prime_lambdas.pod_keys import issue_credentials
from prime_lambdas.secret import has_pod_keys, masters, of_bucket, of_runs
from prime_lambdas.settings import Settings
from prime_train.adapters.bucket import open_bucket, signed_upload
from prime_train.adapters.store_dynamo.calls import Calls
from prime_train.adapters.store_dynamo.store import DynamoStore
from prime_train.control_plane.webhook import WebhookContext
from prime_train.control_plane.webhook.context import IssueCredentials
from prime_train.control_plane.wiring.github_auth import github_claims
from prime_train.core.access.pod_policy import ATTEMPT_MAX
from prime_train.core.errors import ExternalError
from prime_train.core.registry.providers import notice_secrets

if TYPE_CHECKING:
    from prime_train.core.access.policy import InForce
    from prime_train.core.offers import Offer
    from prime_train.core.spec import HardwareSpec

CHECKED_RUN = "doctor" * 8
"""A run name of maximum length, so that the check fails if AWS would refuse the policy of a run with such a name."""


def new_context(settings: Settings, values: Mapping[str, str], calls: Calls, host: str, clock: Callable[[], float]) -> WebhookContext:
    """Return the webhook's context. `host` is the domain name in the request's URL, used as the public URL if none is set."""
    return WebhookContext(
        DynamoStore(calls, settings.table),
        masters(values),
        secrets=of_runs(values, settings),
        run_secrets=settings.run_secrets,
        bucket_url=settings.bucket_url,
        bucket=lambda: open_bucket(settings.bucket_url, {**settings.environment, **settings.place}),
        code_url=signed_upload(settings.bucket_url, {**settings.environment, **settings.place}),
        github_claims=github_claims(settings.environment),
        bucket_keys=settings.place | of_bucket(values),
        issue_credentials=_issuer(settings, clock) if settings.pod_role else None,
        providers=settings.providers,
        public_url=settings.public_url or f"https://{host}",
        watches=True,
        notice_secrets=notice_secrets(values),
        policy=lambda: _policy(settings, values),
        ask_offers=lambda hardware: _offers(settings, values, hardware),
    )


def _policy(settings: Settings, values: Mapping[str, str]) -> "InForce":
    """Return the operator's policy, which the stack's parameter Policy holds."""
    from prime_lambdas.homes import home_of

    policy = home_of(settings, values).policy()
    assert policy is not None, "a stack's own table is not elsewhere"
    return policy


def _offers(settings: Settings, values: Mapping[str, str], hardware: "HardwareSpec") -> "Sequence[Offer] | None":
    """Return the offers of the providers whose credentials are in the stack's secret, as `offers_if_set_up` does."""
    from prime_lambdas.homes import home_of
    from prime_train.control_plane.wiring.providers import offers_if_set_up

    return offers_if_set_up(home_of(settings, values).environment, hardware)


def _issuer(settings: Settings, clock: Callable[[], float]) -> IssueCredentials:
    return lambda run_id, attempt, blobs_of="": issue_credentials(settings, run_id, attempt, clock(), blobs_of)


def checked(settings: Settings, values: Callable[[], Mapping[str, str]], clock: Callable[[], float]) -> dict[str, str]:
    """Return which keys machines get ("role" or "static") and the problem with them ("" if there is none), but never the keys."""
    try:
        lends = bool(settings.pod_role) and not has_pod_keys(values())
        if lends:
            issue_credentials(settings, CHECKED_RUN, ATTEMPT_MAX, clock(), CHECKED_RUN)
    except ExternalError as error:
        return {"keys": "role", "wrong": str(error)}
    return {"keys": "role" if lends else "static", "wrong": ""}
