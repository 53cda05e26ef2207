"""Which variables of the control plane a run may have by naming them under `secrets`: a list of the operator's decides, not the config.

Whoever may write a config is not thereby trusted with the keys to the bucket, to the table or to the provider's account.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

VARIABLE = "PRIME_TRAIN_RUN_SECRETS"
"""Holds the operator's list: names and globs, separated by commas or spaces."""

DEFAULT = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "WANDB_API_KEY",
    "COMET_API_KEY",
    "MLFLOW_TRACKING_TOKEN",
    "NEPTUNE_API_TOKEN",
    "SWANLAB_API_KEY",
)
"""The list where the operator has set none: tokens of model hubs and experiment trackers, and no key that spends money."""

NEVER = ("PRIME_", "SLACK_")
"""Begin the names of what only the control plane itself is trusted with: no list gives these away."""
ONLY_EXPLICITLY = ("AWS_", "AZURE_", "B2_", "CLOUDFLARE_", "GCP_", "GH_", "GITHUB_", "GOOGLE_", "GS_", "R2_", "S3_", "SSH_")
"""Begin the names of keys to clouds and code. A pattern gives one away only where it begins in the same way: `AWS_*` does, `*` does not."""
PATTERNS_MAX = 200
_PATTERN = re.compile(r"[A-Za-z_*?][A-Za-z0-9_*?]{0,127}")


def patterns(text: str) -> tuple[str, ...]:
    """The list that a text holds; the default one where it is blank. ValueError, which names what can be no name of a variable."""
    found = tuple(text.replace(",", " ").split())
    if not all(_PATTERN.fullmatch(pattern) for pattern in found):
        # It is not shown: a value in the place of its name would be a secret.
        raise ValueError(f"{VARIABLE} holds something that is no name of a variable; write names or globs, such as HF_TOKEN,JUDGE_*")
    if len(found) > PATTERNS_MAX:
        raise ValueError(f"{VARIABLE} has {len(found)} entries, more than {PATTERNS_MAX}; a glob such as JUDGE_* stands for many names")
    return found or DEFAULT


def is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """Whether a run that names this variable gets it."""
    if name.upper().startswith(NEVER):
        return False
    reserved = next((prefix for prefix in ONLY_EXPLICITLY if name.upper().startswith(prefix)), "")
    return any(fnmatchcase(name, pattern) for pattern in allowed if pattern.upper().startswith(reserved))


def refused(names: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that no run gets."""
    kept = tuple(allowed)
    return tuple(name for name in names if not is_allowed(name, kept))


def for_runs(values: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """What of these variables runs may have."""
    kept = tuple(allowed)
    return {name: value for name, value in values.items() if is_allowed(name, kept)}
