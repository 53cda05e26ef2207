"""What a job reads of the control plane with the market's key: what earlier runs show of machines, and what
is for rent. The job of a pull request runs its own code, so it has no other key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prime_train.advice import Call, Operation
from prime_train.configs.loader import LoadedConfig
from prime_train.environment import MASTER, STORE
from prime_train.errors import ExternalError
from prime_train.market.observations import Observations
from prime_train.planning.offered import Offered, offered
from prime_train.runs.signing import is_market_key
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.market_remote import MARKET_KEY, read_market
from prime_train.stores.offers_remote import read_offers
from prime_train.stores.signed_http import SignedHttp
from prime_train.text.invocations import command
from prime_train.text.markdown import one_line

NO_KEY = "this job has no key to read what earlier runs show"
UNREAD = "what earlier runs show could not be read"
REASON_CHARS_MAX = 300


@dataclass(frozen=True)
class EarlierRuns:
    """What earlier runs show. `seen`: None if it is not known, `why_unread` in words."""

    seen: Observations | None = None
    why_unread: str = NO_KEY


class MarketReader:
    """The reader of one job. `warn` is called with what is wrong with the settings, or why they lead to
    nothing; it is no mistake in a config, and a fork's pull request has no key at all.
    """

    def __init__(self, environment: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._environment, self._warn = environment, warn
        self._url, self._key = (
            environment.get(STORE, "").strip().rstrip("/"),
            environment.get(MARKET_KEY, "").strip(),
        )
        self._asks = bool(self._url) and is_market_key(self._key)

    def earlier_runs(self, runs: Sequence[LoadedConfig]) -> EarlierRuns:
        """Return what is known for these configs, each of which defines a run."""
        if not runs or not self._key:
            if runs and self._environment.get(MASTER):
                self._warn(
                    f"{MASTER} is not used here, and should not be set: this job runs a pull request's code, "
                    "and the key can spend money"
                )
            return EarlierRuns()
        if not self._asks:
            printed = command(Call(Operation.SHOW_MARKET_KEY))
            self._warn(
                f"{MARKET_KEY} is not the key that {printed} prints"
                if self._url
                else f"{MARKET_KEY} is set, {STORE} is not"
            )
            return EarlierRuns(why_unread=UNREAD)
        specs = [loaded.spec for loaded in runs if loaded.spec is not None]
        try:
            images = {spec.hardware.image for spec in specs if spec.hardware.image}
            return EarlierRuns(
                read_market(self._url, self._key, configs={spec.name for spec in specs}, images=images)
            )
        except ExternalError as error:
            self._asks = False
            self._warn(f"{UNREAD}: {one_line(str(error))[:REASON_CHARS_MAX]}")
            return EarlierRuns(why_unread=UNREAD)

    def offered(self, hardware: HardwareSpec) -> Offered:
        """Return the offers of the control plane's providers or, if it is not asked or does not answer, those
        of the providers that are set up in this job, or else the catalogue's. Raises ExternalError if no
        provider answers.
        """
        if self._asks:
            try:
                found = read_offers(SignedHttp(self._url, self._key), hardware)
            except ExternalError as error:
                self._asks = False  # the other configs of the job need not wait for it
                self._warn(
                    f"the control plane's offers could not be read: {one_line(str(error))[:REASON_CHARS_MAX]}"
                )
            else:
                if found is not None:
                    return Offered(found)
        return offered(self._environment, hardware)
