"""What the account's earlier runs show, for a job that may not read the control plane's store: a pull request's job runs its own code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prime_train.adapters.market_remote import MARKET_KEY, read_market
from prime_train.configs.loader import LoadedConfig
from prime_train.control_plane.wiring.master_key import MASTER
from prime_train.control_plane.wiring.providers import STORE
from prime_train.core.access.signing import is_market_key
from prime_train.core.advice import Call, Operation
from prime_train.core.errors import ExternalError
from prime_train.core.market.observations import Observations
from prime_train.core.text.commands import command
from prime_train.reports.markdown import one_line

NO_KEY = "this job has no key to read what earlier runs show"
UNREAD = "what earlier runs show could not be read"
REASON_CHARS_MAX = 300


@dataclass(frozen=True)
class EarlierRuns:
    """What earlier runs show. `seen`: None if it is not known, `why_unread` in words."""

    seen: Observations | None = None
    why_unread: str = NO_KEY


def earlier_runs(environment: Mapping[str, str], runs: Sequence[LoadedConfig], warn: Callable[[str], None]) -> EarlierRuns:
    """Return what is known for these configs, each of which defines a run. `warn` is called with what is wrong with the settings, or why
    they lead to nothing; it is no mistake in a config, and a fork's pull request has no key at all."""
    url, key = environment.get(STORE, "").strip(), environment.get(MARKET_KEY, "").strip()
    if not runs or not key:
        if runs and environment.get(MASTER):
            warn(f"{MASTER} is not used here, and should not be set: this job runs a pull request's code, and the key can spend money")
        return EarlierRuns()
    if not is_market_key(key) or not url:
        printed = command(Call(Operation.SHOW_MARKET_KEY))
        warn(f"{MARKET_KEY} is not the key that {printed} prints" if url else f"{MARKET_KEY} is set, {STORE} is not")
        return EarlierRuns(why_unread=UNREAD)
    specs = [loaded.spec for loaded in runs if loaded.spec is not None]
    try:
        images = {spec.hardware.image for spec in specs if spec.hardware.image}
        return EarlierRuns(read_market(url.rstrip("/"), key, configs={spec.name for spec in specs}, images=images))
    except ExternalError as error:
        warn(f"{UNREAD}: {one_line(str(error))[:REASON_CHARS_MAX]}")
        return EarlierRuns(why_unread=UNREAD)
