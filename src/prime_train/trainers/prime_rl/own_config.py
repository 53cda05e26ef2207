"""The config that prime-rl will have in a run: its files, the arguments of the spec, and the settings of
every launch.
"""

from dataclasses import replace

from prime_train.spec.tree import Listing, Mapping, Scalar, find
from prime_train.trainers.kind import Configured, OwnConfig
from prime_train.trainers.prime_rl.arguments import arguments, ours

LAYERS_MAX = 20
"""Maximum number of included files; later ones are not read."""


def own_config(spec: Configured, root: Mapping, file: str) -> OwnConfig:
    part = spec.trainer.prime_rl
    assert part is not None
    node = find(root, ("trainer", "prime_rl", "overrides"))
    items = node.items if isinstance(node, Listing) else ()
    given = arguments(
        [replace(item, place=replace(item.place, file=file)) for item in items if isinstance(item, Scalar)]
    )
    files = (((), part.config), *((include.path, include.file) for include in given.includes[:LAYERS_MAX]))
    return OwnConfig(files, (given.values, ours(spec, root, file)))
