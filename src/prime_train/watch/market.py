"""What a watcher knows when it ranks the offers for a run."""

from dataclasses import dataclass, field

from prime_train.errors import ExternalError
from prime_train.market.left_of_run import market_of
from prime_train.market.observations import Observations, observations
from prime_train.market.quotes import Market
from prime_train.runs.run import Run
from prime_train.runs.store import Store
from prime_train.watch.port import Watched

KEPT_S = 60
"""Seconds for which what was seen is kept, so that many launches in a row do not read all runs again and again."""


@dataclass
class SeenMachines:
    """What this account has seen of machines, as this process last read it from the store."""

    _seen: Observations = field(default_factory=Observations)
    _read_s: int | None = None

    def market(self, store: Store, run: Run, now_s: int, watched: Watched) -> Market:
        """Return what the offers for the run's next machine are compared by. If the store's runs cannot be read, it is this run alone that
        tells what was seen, because no run should wait for the others'."""
        if self._read_s is None or not 0 <= now_s - self._read_s < KEPT_S:
            try:
                self._seen, self._read_s = observations(store.list_runs(), now_s), now_s
            except ExternalError as error:
                watched(run.run_id, "RunsUnread", f"{error}; offers are ranked by what this run has seen")
                return market_of(run, observations([run], now_s), now_s)
        return market_of(run, self._seen, now_s)
