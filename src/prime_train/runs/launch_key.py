"""Keys that permit launching runs from one repository, reading and stopping them, and nothing else.

A key is derived from the master key and its own name, so the store holds nothing that opens anything: only a
row for each key, with what it permits, which revoking the key deletes. A row may also trust GitHub instead of
having a key: whoever brings a token that GitHub has signed for such a job gets a key for an hour, whose name
holds the row, its end and who it is for.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

LAUNCH_KEY = "PRIME_TRAIN_LAUNCH_KEY"
LAUNCH_KEY_HEADER = "x-pt-launch-key"
"""Header with the name of the key that has signed the request."""
LAUNCH_KEY_PATH = "/v1/launch-key"
"""Path at which a token of GitHub is exchanged for a launch key."""
SESSION_S = 3600
"""Seconds for which a key is valid that was given for a token of GitHub."""
KEYS_MAX = 100
"""Most launch keys of a control plane, because they are read for each of their calls."""
ROW_PATTERN = r"[0-9a-f]{8}"
REPOSITORY_PATTERN = r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}"
ACTOR_PATTERN = r"[A-Za-z0-9_\[\]-]{1,60}"
_NAME = re.compile(rf"({ROW_PATTERN})(?:\.([0-9]{{1,12}})\.({ACTOR_PATTERN}))?")
_TOKEN = re.compile(rf"pt_launch_({_NAME.pattern})_([0-9a-f]{{64}})")
_REPOSITORY = re.compile(REPOSITORY_PATTERN)
_ACTOR = re.compile(ACTOR_PATTERN)


@dataclass(frozen=True)
class LaunchKey:
    """A row: what one launch key permits. `actor`: the only person for whom it launches, empty for everyone
    of the repository. `usd_max`: the most dollars of one run's budget. `expires_s`: the second of the store's
    time from which it opens nothing. `is_github`: there is no key, but jobs of GitHub get one, only in
    `environment` and of `ref` where these are set.
    """

    repository: str
    created_s: int
    actor: str = ""
    usd_max: float | None = None
    expires_s: int | None = None
    is_github: bool = False
    environment: str = ""
    ref: str = ""


@dataclass(frozen=True)
class LaunchRight:
    """What the holder of a key may do: launch runs of the repository, for this person, with a budget of
    `usd_max` dollars at most.
    """

    repository: str
    actor: str = ""
    usd_max: float | None = None


@dataclass(frozen=True)
class LaunchToken:
    """A launch key as its holder has it: its name, which is sent, and the secret with which requests are
    signed.
    """

    name: str
    secret: str


def is_repository(text: str) -> bool:
    return _REPOSITORY.fullmatch(text) is not None


def is_actor(text: str) -> bool:
    return _ACTOR.fullmatch(text) is not None


def is_key_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def launch_secret(master: bytes, name: str) -> str:
    """Return the secret of the launch key with this name, hex."""
    return hmac.new(master, f"pt/launch/v1|{name}".encode(), hashlib.sha256).hexdigest()


def launch_token(master: bytes, name: str) -> str:
    """Return the launch key as text, for `PRIME_TRAIN_LAUNCH_KEY`."""
    return f"pt_launch_{name}_{launch_secret(master, name)}"


def parse_launch_token(text: str) -> LaunchToken | None:
    """Return the launch key in the text; None if it is none."""
    found = _TOKEN.fullmatch(text.strip())
    return LaunchToken(found[1], found[5]) if found else None


def session_name(row: str, actor: str, until_s: int) -> str:
    """Return the name of a key that is given to `actor` by a row that trusts GitHub."""
    return f"{row}.{until_s}.{actor}"


def right_of(rows: Mapping[str, LaunchKey], name: str, now_s: int) -> LaunchRight | str:
    """Return what the key with this name permits now, or why it permits nothing."""
    found = _NAME.fullmatch(name)
    row = rows.get(found[1]) if found else None
    if found is None or row is None:
        return "this launch key was revoked"
    if row.expires_s is not None and now_s >= row.expires_s:
        return "this launch key has expired"
    if row.is_github != (found[2] is not None):
        return "this launch key was revoked"
    if not row.is_github:
        return LaunchRight(row.repository, row.actor, row.usd_max)
    until_s = int(found[2])
    if not now_s < until_s <= now_s + SESSION_S:
        return "this launch key was given for an hour, which has passed"
    return LaunchRight(row.repository, found[3], row.usd_max)


def row_for_job(rows: Mapping[str, LaunchKey], claims: Mapping[str, object], now_s: int) -> str | None:
    """Return the name of the row that trusts the job with these claims, which GitHub has signed; None if
    there is none. Of several, the one with the most dollars is chosen.
    """
    fitting = [
        (float("inf") if row.usd_max is None else row.usd_max, name)
        for name, row in rows.items()
        if row.is_github
        and not (row.expires_s is not None and now_s >= row.expires_s)
        and _trusts(row, claims)
    ]
    return max(fitting)[1] if fitting else None


def _trusts(row: LaunchKey, claims: Mapping[str, object]) -> bool:
    wanted = {
        "repository": row.repository,
        "environment": row.environment,
        "ref": row.ref,
        "actor": row.actor,
    }
    return all(str(claims.get(name, "")).lower() == value.lower() for name, value in wanted.items() if value)
