"""The control plane of a drill: a home of its own, in a folder of the user's, so that neither sees the
other's runs and machines.

Its key stays the same, so that an account does not get another SSH key with each drill, and a drill finds by
their names the machines that one before it had to leave behind.
"""

import fcntl
import hashlib
import hmac
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prime_train.api_exchange import Witness
from prime_train.app.home import Home
from prime_train.app.logs import logged_in
from prime_train.app.master_key import key_in_file
from prime_train.environment import BUCKET, HOME, MASTER, POD_PYTHON, PROVIDER, PUBLIC_URL
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.kinds import PROVIDERS, credentials
from prime_train.spec.choices import Spot
from prime_train.spec.spec import RunSpec

FOLDER = "drill"
NAME = "drill"
OURS = "PRIME_TRAIN_"
KEPT = (
    PUBLIC_URL,
    POD_PYTHON,
    "PRIME_TRAIN_POD_",
    "PRIME_TRAIN_RUNPOD_",
    "PRIME_TRAIN_VAST_BID",
    "PRIME_TRAIN_KUBERNETES",
)
"""How those of prime-train's own variables begin that a drill needs: addresses and settings of providers.
Nobody is notified of it.
"""
ACCOUNT = "_ACCOUNT"
NOT_NEEDED = frozenset({"WANDB_API_KEY"})
HEARTBEAT_S = 2
ENDING_MINUTES = 5.0
"""Minutes for which a provider may be asked until it has ended a machine."""


@dataclass(frozen=True)
class Limits:
    """What a drill may take: `usd` altogether, and `minutes` from the order of a machine until it is to be
    ended. `spot`: whether a spot machine is rented, and no other.
    """

    usd: float
    minutes: float
    spot: bool = False

    @property
    def usd_per_hour(self) -> float:
        """Return the highest price of a machine that costs no more than `usd` until it is given back."""
        return self.usd / self.paid_h

    @property
    def paid_h(self) -> float:
        """Return the hours for which a machine is paid at most."""
        return (self.minutes + ENDING_MINUTES) / 60

    @property
    def seconds(self) -> float:
        return 60 * self.minutes


@contextmanager
def drill_home(home: Home, name: str, witness: Witness) -> Iterator[Home]:
    """Yield the home of a drill of this provider, with nothing in it but its key, and delete its folder
    afterwards. `home`: the user's. Raises UsageError if another drill of the provider runs.
    """
    folder = home.root / FOLDER / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder.parent / f"{name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another drill of {PROVIDERS[name].title} runs now"
            raise UsageError(message, fix="wait until it has ended", code=Exit.EXTERNAL_REFUSED) from None
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        try:
            with logged_in(folder.parent / f"{name}.log"):
                others = credentials() - {*PROVIDERS[name].credentials}
                kept = {
                    key: value
                    for key, value in home.environment.items()
                    if _is_kept(key) and key not in others
                }
                own = hmac.new(
                    key_in_file(folder.parent / "key"), b"pt/drill/v1/" + name.encode(), hashlib.sha256
                ).hexdigest()
                yield Home(
                    folder, kept | {HOME: str(folder), PROVIDER: name, MASTER: own, **_bucket(home)}, witness
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def drill_spec(name: str, limits: Limits, tree: Path) -> RunSpec:
    """Return the spec of the run. `tree`: the folder of its code, in which `train.py` is."""
    longest_s = round(limits.seconds) + HEARTBEAT_S
    return RunSpec.model_validate(
        {
            "name": NAME,
            "trainer": {
                "command": "python train.py --out out/checkpoints --progress progress.jsonl",
                "steps": 1_000_000,
                "resume": "--resume-step {step}",
                "stop_s": 2,
                "code": {"folder": str(tree)},
                "progress": {"kind": "jsonl", "file": "progress.jsonl"},
            },
            "checkpoints": {
                "folder": "out/checkpoints",
                "pattern": "step_{step}",
                "sentinel": "COMPLETE",
                "settled_s": 1,
            },
            "hardware": {
                "provider": name,
                "spot": Spot.ONLY if limits.spot else Spot.NEVER,
                "migrate": "never",
                "usd_per_hour_max": limits.usd_per_hour,
                "open_files_min": 256,
                "disk_mb_per_s_min": 0,
                "download_mb_per_s_min": 0,
            },
            # Whatever takes long ends with the drill, and not by a second machine.
            "health": {"heartbeat_s": HEARTBEAT_S, "first_heartbeat_s": longest_s, "first_step_s": longest_s},
            "budget": {"usd": limits.usd, "restarts_without_progress": 1},
        }
    )


def written_tree(folder: Path) -> Path:
    """Write the code that trains into a new folder, and return that."""
    tree = folder / "tree"
    tree.mkdir()
    shutil.copyfile(Path(__file__).with_name("train.py"), tree / "train.py")
    return tree


def secrets_of(home: Home, name: str) -> list[str]:
    """Return the values that a record may not repeat: the provider's credentials, the keys of the home and
    its variables that are one.
    """
    known = {*PROVIDERS[name].credentials, MASTER}
    values = [
        value for variable, value in home.environment.items() if variable in known or _is_secret(variable)
    ]
    return [value for value in values if len(value) >= 6]


def _is_secret(variable: str) -> bool:
    return variable.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS"))


def _bucket(home: Home) -> Mapping[str, str]:
    """Return the variable of the user's bucket; none if that is a folder of the user's home, which has
    nothing to do with a drill.
    """
    url = home.bucket_url
    return {} if url == (home.root / "bucket").as_uri() else {BUCKET: url}


def _is_kept(variable: str) -> bool:
    return variable not in NOT_NEEDED and (
        not variable.startswith(OURS) or variable.startswith(KEPT) or variable.endswith(ACCOUNT)
    )
