"""The operator's policy as it is in force at a control plane: what is written, and which providers are set up
there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from prime_train.configs.policy import read_policy
from prime_train.providers.configured import default_providers, names_set_up, providers_named
from prime_train.providers.kinds import OWN_MACHINES
from prime_train.spec.policy import InForce


def in_force(root: Path, environment: Mapping[str, str], *, served_from: Sequence[str] = ()) -> InForce:
    """Return the policy of the control plane in the home `root`. `served_from`: the providers of the process
    that serves the home, whose environment may have keys that this one lacks. Raises UsageError if the policy
    cannot be used.
    """
    rents_from = dict.fromkeys((*names_set_up(environment), *served_from))
    return replace(
        read_policy(root, environment),
        rents_from=tuple(name for name in rents_from if name not in OWN_MACHINES),
        named=tuple(name for name in providers_named(environment) if name in OWN_MACHINES),
        defaults=tuple(served_from) or default_providers(environment),
    )
