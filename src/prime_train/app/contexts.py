"""What the two halves of a control plane need of its home: the webhook, and a watcher. Only what serves or
watches loads this.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from prime_train.alerts.log import LogNotifier
from prime_train.app.home import Home
from prime_train.app.notifiers import notifiers_of
from prime_train.app.pod_keys import keys_for_pods
from prime_train.app.policy import in_force
from prime_train.buckets.open import address, signed_upload
from prime_train.environment import BUCKET, FILE
from prime_train.errors import UsageError
from prime_train.github.auth import github_claims
from prime_train.providers.configured import default_providers, offers_if_set_up
from prime_train.providers.kinds import PROVIDERS, notice_secrets
from prime_train.tracker.port import NoTracker, Tracker
from prime_train.tracker.wandb import tracker_from
from prime_train.watch.canary_http import CanaryHttp
from prime_train.watch.context import Context
from prime_train.watch.port import Watched
from prime_train.webhook.state import WebhookContext

READ_BACK = "PRIME_TRAIN_READ_BACK"
"""1: the watcher reads checkpoints back from a bucket where reading may cost money."""


def webhook_context(home: Home, public_url: str, *, watches: bool) -> WebhookContext:
    """Return what the webhook of this home needs."""
    keys, issue_credentials = keys_for_pods(home.bucket_url, home.environment)
    return WebhookContext(
        home.store(),
        (home.master(),),
        secrets=home.secrets,
        run_secrets=home.run_secrets,
        bucket_url=home.bucket_url,
        bucket=home.bucket,
        code_url=signed_upload(home.bucket_url, home.environment),
        github_claims=github_claims(home.environment),
        bucket_mark=home.bucket_mark,
        bucket_keys=keys,
        issue_credentials=issue_credentials,
        providers=default_providers(home.environment),
        public_url=public_url,
        watches=watches,
        notice_secrets=notice_secrets(home.environment),
        policy=lambda: in_force(home.root, home.environment),
        ask_offers=partial(offers_if_set_up, home.environment),
    )


def watcher_context(
    home: Home, webhook_url: str, *, watched: Watched | None = None, waits: bool = False, serves: bool = False
) -> Context:
    """Return what a watcher needs. `webhook_url`: the URL that agents call. `waits`: for a process that ends
    soon, see `Providers`. `serves`: for the process that serves the home, whose own providers are those of
    runs that name none.
    """
    _refuse_unset_bucket(home)
    master, providers = home.master(), home.providers(webhook_url, waits=waits)
    # Rented and judged by the same ones: another process may lack the keys of the one that serves.
    last = home.last_serving() if not (serves or home.table_url) else None
    defaults = last.providers if last is not None else default_providers(home.environment)
    pods = providers.pods_with(defaults)
    is_beside = bool(home.elsewhere) and home.about.watches
    notifiers = notifiers_of(home.environment, home.store, home.bucket)
    context = Context(
        store=home.store(),
        bucket=home.bucket(),
        pods=pods,
        master=master,
        webhook_url=webhook_url,
        # The log of a control plane is its own watcher's.
        notifiers=tuple(one for one in notifiers if not (is_beside and isinstance(one, LogNotifier))),
        tracker=_tracker(home.environment),
        canary=CanaryHttp(webhook_url, master),
        # For a remote control plane it is unknown here which secrets it can provide.
        secrets=None if home.elsewhere else home.secrets,
        providers=pods.names,
        shared=frozenset(name for name, row in PROVIDERS.items() if row.is_rented),
        accounts=providers.accounts,
        is_guest=bool(home.elsewhere),
        reads_back=home.bucket_url.startswith(FILE) or home.environment.get(READ_BACK) == "1",
        not_allowed=partial(home.not_allowed, defaults=defaults),
        delivers=not is_beside,
    )
    return context if watched is None else replace(context, watched=watched)


def _refuse_unset_bucket(home: Home) -> None:
    """Raise UsageError if no bucket is set here although the control plane's is elsewhere: the home's own
    folder would look like one in which no run has anything.
    """
    if home.elsewhere or home.environment.get(BUCKET) or not home.has_runs:
        return
    known = home.store().watch().buckets
    if known and address(home.bucket_url) not in known:
        message = f"{BUCKET} is not set here, and the control plane's bucket is {' or '.join(sorted(known))}"
        raise UsageError(message, fix=f"set {BUCKET} to the bucket of the control plane")


def _tracker(environment: Mapping[str, str]) -> Tracker:
    """Return the W&B tracker if its API key is set."""
    if not environment.get("WANDB_API_KEY"):
        return NoTracker()
    return tracker_from(environment) or NoTracker()
