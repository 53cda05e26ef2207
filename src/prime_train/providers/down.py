"""The providers whose breaker is open: watchers cannot read the list of their machines."""

from prime_train.runs.store import Store
from prime_train.text.formatting import span


def down(store: Store) -> dict[str, str]:
    """Return the providers that do not answer the watchers, each with a sentence for people."""
    now_s, since_s = store.now_s(), store.watch().down_since_s
    return {
        name: f"the list of machines at {name} could not be read for {span(now_s - at_s)}: nothing is "
        "concluded about its machines, and runs rent elsewhere where they may"
        for name, at_s in since_s.items()
    }
