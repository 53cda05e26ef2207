"""Decides by the operator's list, not by the config, which of the control plane's variables a run gets when
it names them under `secrets`.

The right to write a config does not include access to the keys of the bucket, the table or the provider's
account.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from prime_train.providers.kinds import credentials

VARIABLE = "PRIME_TRAIN_RUN_SECRETS"
"""The variable with the operator's list: names and globs, separated by commas or spaces."""

DEFAULT = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "WANDB_API_KEY",
    "COMET_API_KEY",
    "MLFLOW_TRACKING_TOKEN",
    "NEPTUNE_API_TOKEN",
    "SWANLAB_API_KEY",
)
"""The default for the operator's list: tokens of model hubs and experiment trackers, and no key that spends
money.
"""

NEVER = ("PRIME_", "SLACK_")
"""Prefixes of variables that belong to the control plane alone: no list makes them available to runs."""
ONLY_EXPLICITLY = (
    "AWS_",
    "AZURE_",
    "B2_",
    "CLOUDFLARE_",
    "GCP_",
    "GH_",
    "GITHUB_",
    "GOOGLE_",
    "GS_",
    "R2_",
    "S3_",
    "SSH_",
)
"""Prefixes of keys to clouds and code. A pattern allows one only if it starts with the same prefix: `AWS_*`
does, `*` does not.
"""
PATTERNS_MAX = 200
_PATTERN = re.compile(r"[A-Za-z_*?][A-Za-z0-9_*?]{0,127}")


def patterns(text: str) -> tuple[str, ...]:
    """Return the patterns in `text`; the default list if it is blank. Raises ValueError if an entry cannot be
    the name of a variable.
    """
    found = tuple(text.replace(",", " ").split())
    if not all(_PATTERN.fullmatch(pattern) for pattern in found):
        # The entry is not shown: a value in the place of its name would be a secret.
        raise ValueError(
            f"{VARIABLE} contains something that is not the name of a variable; write names or globs, such "
            "as HF_TOKEN,JUDGE_*"
        )
    if len(found) > PATTERNS_MAX:
        raise ValueError(
            f"{VARIABLE} has {len(found)} entries, more than {PATTERNS_MAX}; use globs such as JUDGE_*, "
            "which match many names"
        )
    return found or DEFAULT


def is_reserved(name: str) -> bool:
    """Return whether the variable belongs to the control plane alone, so that no list makes it available to
    runs.
    """
    return name.upper().startswith(NEVER) or name in credentials()


def is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """Return whether a run that names this variable gets it."""
    if is_reserved(name):
        return False
    reserved = next((prefix for prefix in ONLY_EXPLICITLY if name.upper().startswith(prefix)), "")
    return any(fnmatchcase(name, pattern) for pattern in allowed if pattern.upper().startswith(reserved))


def refused(names: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Return those of `names` that no run gets."""
    kept = tuple(allowed)
    return tuple(name for name in names if not is_allowed(name, kept))


def for_runs(values: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Return those of these variables that runs may have."""
    kept = tuple(allowed)
    return {name: value for name, value in values.items() if is_allowed(name, kept)}
