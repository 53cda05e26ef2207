"""The port `Provider` on this machine."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.providers.kinds import LOCAL
from prime_train.providers.local.files import read_json
from prime_train.providers.local.pods import DEFAULT_OFFERS, LocalPods
from prime_train.providers.local.walls import Walls, environment_of_machine
from prime_train.providers.port import Provider, ProviderContext
from prime_train.runs.offer import Offer

BUCKET = "PRIME_TRAIN_BUCKET"
WHOLE_MACHINE = "PRIME_TRAIN_WHOLE_MACHINE"
"""Set where the machine is there for its runs alone, as that of an exported task: they get its environment,
and need no walls.
"""
FOLDER = "pods"
OFFERS = "offers.json"
"""File in this folder with the offers of this machine by id, if they differ from the default ones:
{ID: {"usd_per_hour": 0.5, "spot": true, "gpu": "H100_80GB", "gpu_count": 8}}."""


class LocalProvider(Provider):
    """Machines that are folders and processes of this machine."""

    def __init__(self, context: ProviderContext) -> None:
        folder = context.root / FOLDER
        if context.environment.get(WHOLE_MACHINE):
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
            self._pods = LocalPods(
                folder,
                offers=_offers(folder / OFFERS),
                environment=environment_of_machine(os.environ) | {"PATH": path},
            )
            return
        walls = Walls(context.root, context.environment.get(BUCKET) or (context.root / "bucket").as_uri())
        self._pods = LocalPods(folder, offers=_offers(folder / OFFERS), walls=walls)

    def pods(self) -> LocalPods:
        return self._pods


def _offers(file: Path) -> Sequence[Offer]:
    """Return the offers in the file; the default ones if there is no such file. Raises PermanentError if one
    of them is none.
    """
    try:
        return [_offer(name, row) for name, row in read_json(file).items()] or DEFAULT_OFFERS
    except (TypeError, ValueError, KeyError) as error:
        raise PermanentError(f"{file} contains something that is no offer: {error}") from error


def _offer(name: str, row: object) -> Offer:
    if not isinstance(row, dict):
        raise TypeError(f"{name} is not an object")
    return Offer(
        LOCAL,
        name,
        float(row["usd_per_hour"]),
        bool(row["spot"]),
        str(row.get("gpu", "")),
        int(row.get("gpu_count", 0)),
    )
