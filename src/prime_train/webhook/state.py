"""The webhook's state: the store, the master keys, the secrets, and a cache of runs so that a heartbeat costs
one write.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from prime_train.buckets.port import Bucket
from prime_train.runs.store import Secrets, Store
from prime_train.runs.unreadable import UnreadableRecord
from prime_train.runs.wire import PodKeys
from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.webhook.commits import CommitCheck
from prime_train.webhook.keyring import CACHED_MAX, Keyring
from prime_train.webhook.market import MarketAnswer
from prime_train.webhook.offers import AskOffers, OffersAnswer
from prime_train.webhook.responses import HEARTBEAT_S

if TYPE_CHECKING:
    from prime_train.spec.policy import InForce

NOTICED_MAX = 10_000
KEYS = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})


class IssueCredentials(Protocol):
    """A function that returns keys to the bucket for one attempt, or for the operator, given "" and 0.
    `blobs_of`: another run whose blobs the attempt may read; empty if there is none. Raises ExternalError.
    """

    def __call__(self, run_id: str, attempt: int, blobs_of: str = "", /) -> PodKeys: ...


class WebhookContext(Keyring):
    """Everything the webhook needs: the store, the master keys (the first signs new keys, all are accepted),
    secrets, and the place of the bucket. `providers`, `public_url`, `watches` and `run_secrets` are reported
    to the operator: the providers of runs whose configs name none, the URL that machines call, whether a
    watcher runs beside this webhook, and the list by which `secrets` was chosen. `bucket`: opens the bucket,
    to check commits. `code_url`: returns a URL to which an object may be uploaded for some minutes; None for
    a bucket that is a folder. `github_claims`: returns what a token of GitHub, made for this address, says;
    raises PermanentError if it is not valid; None: such tokens are not taken. `issue_credentials`: issues
    temporary keys for pods, unless `bucket_keys` has permanent ones. `policy`: reads the operator's policy,
    which clients may not exceed, and raises UsageError if it cannot be used; None: clients may launch
    anything. `ask_offers`: asks the providers what they have for rent; None: none is set up.
    """

    def __init__(
        self,
        store: Store,
        masters: tuple[bytes, ...],
        *,
        secrets: Secrets,
        bucket_url: str,
        bucket: Callable[[], Bucket],
        bucket_mark: str = "",
        bucket_keys: Secrets | None = None,
        issue_credentials: IssueCredentials | None = None,
        providers: tuple[str, ...] = (),
        public_url: str = "",
        watches: bool = False,
        run_secrets: tuple[str, ...] = DEFAULT,
        notice_secrets: tuple[str, ...] = (),
        code_url: Callable[[str, int], str] | None = None,
        github_claims: Callable[[str, str], Mapping[str, object]] | None = None,
        policy: "Callable[[], InForce] | None" = None,
        ask_offers: AskOffers | None = None,
    ) -> None:
        super().__init__(masters, notice_secrets)
        self.store, self.secrets, self.bucket_url, self.bucket_mark = store, secrets, bucket_url, bucket_mark
        self.providers, self.public_url, self.watches, self.run_secrets = (
            providers,
            public_url,
            watches,
            run_secrets,
        )
        self.bucket_keys, self.issue_credentials = dict(bucket_keys or {}), issue_credentials
        self.code_url, self.github_claims, self.policy = code_url, github_claims, policy
        self.market, self.commits, self.offers = (
            MarketAnswer(store),
            CommitCheck(bucket),
            OffersAnswer(ask_offers),
        )
        self._paces: dict[str, int] = {}
        self._noticed: dict[str, None] = {}

    @property
    def issues_credentials_at_start(self) -> bool:
        """Return whether an attempt starts with temporary keys: they can be issued, and `bucket_keys` has no
        permanent ones. Whether it gets new ones later does not depend on this.
        """
        return self.issue_credentials is not None and not KEYS.issubset(self.bucket_keys)

    def is_noticed(self, event: str) -> bool:
        """Return whether the notice with this id was acted upon before; providers send one again until it is
        accepted.
        """
        return event in self._noticed

    def notice(self, event: str) -> None:
        """Record that the notice was acted upon."""
        if len(self._noticed) >= NOTICED_MAX:
            self._noticed.clear()
        self._noticed[event] = None

    def pace_s(self, run_id: str) -> int:
        """Return the seconds between heartbeats from the run's spec; cached, because they never change."""
        known = self._paces.get(run_id)
        if known is not None:
            return known
        try:
            record = self.store.load(run_id)
        except (
            UnreadableRecord
        ):  # its machine goes on, and its heartbeats come in one transaction with those of others
            record = None
        if record is None:
            return HEARTBEAT_S
        if len(self._paces) >= CACHED_MAX:
            self._paces.clear()
        self._paces[run_id] = record.run.spec.health.heartbeat_s
        return record.run.spec.health.heartbeat_s
