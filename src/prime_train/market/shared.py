"""What this account has seen of machines, as JSON for a reader elsewhere who may not read the store.

Configs and images are named by digests: who asks about a config knows its names, and nobody learns those of
others. Machines, hosts and data centres have the names that their providers show to everyone.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

from prime_train.market.observations import Observations, Times
from prime_train.market.reputation import Axis, Reputation
from prime_train.market.shared_json import as_plain, from_plain

BYTES_MAX = 2**20
"""Size limit of the JSON."""
PAIRS_MAX = 1024
"""How many entries of each mapping are kept at most: of configs and trainings those of the newest runs."""

_Name = Callable[[str], str | None]


def packed(seen: Observations) -> bytes:
    """Return the JSON, at most `BYTES_MAX` bytes: if it is larger, fewer entries are kept."""
    hidden, pairs_max = _without_runs(_renamed(seen, digest, digest)), PAIRS_MAX
    while len(body := json.dumps(as_plain(hidden, pairs_max), separators=(",", ":")).encode()) > BYTES_MAX:
        pairs_max //= 2
    return body


def unpacked(body: bytes, configs: Iterable[str], images: Iterable[str]) -> Observations:
    """Return what was packed, with the names of these configs and images; what is about others is left out.
    Raises ValueError if the body does not fit.
    """
    try:
        seen: Observations = from_plain(Observations, json.loads(body))
    except RecursionError as error:
        raise ValueError("lists in lists in lists") from error
    return _renamed(
        seen, {digest(name): name for name in configs}.get, {digest(name): name for name in images}.get
    )


def digest(name: str) -> str:
    return sha256(name.encode("utf-8", "replace")).hexdigest()


def _renamed(seen: Observations, config: _Name, image: _Name) -> Observations:
    """Return the same with other names of configs and images; what has none is left out."""
    exclusions = {}
    for place, exclusion in seen.reputation.exclusions.items():
        name = image(place.name) if place.axis is Axis.IMAGE else place.name
        if name is not None:
            named = replace(place, name=name)
            exclusions[named] = replace(exclusion, place=named)
    return replace(
        seen,
        setup=_keyed(seen.setup, config),
        resume=_keyed(seen.resume, config),
        reputation=Reputation(exclusions),
    )


def _without_runs(seen: Observations) -> Observations:
    """Return the same without the ids of runs, which begin with the names of their configs."""
    steps, similar = (
        {
            key: {kind: replace(one, run="") for kind, one in measured.items()}
            for key, measured in known.items()
        }
        for known in (seen.steps, seen.similar)
    )
    lengths = {key: replace(one, runs=()) for key, one in seen.lengths.items()}
    return replace(seen, steps=steps, similar=similar, lengths=lengths)


def _keyed(times: Mapping[str, Times], config: _Name) -> dict[str, Times]:
    named = ((config(name), one) for name, one in times.items())
    return {name: one for name, one in named if name is not None}
