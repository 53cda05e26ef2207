"""Where the operator's policy is, and whether a config could exceed it: read without loading the validation
library.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from prime_train.environment import HOME, STORE
from prime_train.providers.kinds import OWN_MACHINES, NamesProviders, allowed_providers

VARIABLE = "PRIME_TRAIN_POLICY"
"""The variable with the path of the policy, or with its text."""
FILE = "policy.yaml"
"""The policy's file in the control plane's home, if the variable is not set."""


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the home that the environment names, or the default one."""
    named = environment.get(HOME)
    return Path(named).absolute() if named else Path.home() / ".prime-train"


def policy_file(root: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the policy's file: that which the variable names, or the one in the home; None if the variable
    has the text itself.
    """
    named = environment.get(VARIABLE, "")
    if "\n" in named or ": " in named or named.startswith("{"):
        return None
    return Path(named).expanduser() if named else root / FILE


def has_policy(root: Path, environment: Mapping[str, str]) -> bool:
    """Return whether the operator has written a policy here. A link that leads nowhere is one, which cannot
    be read.
    """
    return bool(environment.get(VARIABLE)) or is_there(root / FILE)


def is_there(file: Path) -> bool:
    """Return whether something has this name, also what cannot be looked at: only what is certainly absent
    counts as no policy.
    """
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class AsksOfOperator(NamesProviders, Protocol):
    """The part of a config that the default policy is about."""

    @property
    def volumes(self) -> Mapping[str, object]: ...


def may_exceed(hardware: AsksOfOperator, environment: Mapping[str, str]) -> bool:
    """Return whether a config could exceed the policy: the default one is only about the operator's own
    machines and volumes.
    """
    if environment.get(STORE) or has_policy(home_folder(environment), environment):
        return True
    return bool(hardware.volumes) or any(name in OWN_MACHINES for name in allowed_providers(hardware))
