"""The home for a function: its store is the stack's table, and its environment has the secret's values."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from prime_lambdas.secret import masters
from prime_lambdas.settings import Settings
from prime_train.app.home import Home
from prime_train.environment import MASTER

ROOT = Path("/tmp/prime-train")
FOLDER_CHARS = 8


def home_of(settings: Settings, values: Mapping[str, str], root: Path = ROOT) -> Home:
    """Return the home below `root`, with its folder. Raises PermanentError if the secret holds no master
    key.
    """
    newest = masters(values)[0]
    # One folder for each master key: its contents derive from the key, and an instance outlives a change of
    # the secret.
    folder = root / hashlib.sha256(newest).hexdigest()[:FOLDER_CHARS]
    # AWS keys in the secret are for runs and must never be the function's own.
    given = {name: value for name, value in values.items() if not name.startswith("AWS_")}
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Home(folder, {**settings.environment, **given, MASTER: newest.hex()})
