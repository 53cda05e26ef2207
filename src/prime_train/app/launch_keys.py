"""Launch keys of a control plane: make, list and revoke them. What each permits is stored with the state that
the watchers share.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.runs.launch_key import KEYS_MAX, LaunchKey, is_actor, is_repository, launch_token
from prime_train.runs.store import Store

TRIES_MAX = 10
TEXT_CHARS_MAX = 200
_SPAN = re.compile("([1-9][0-9]{0,4})([hd])")
_SPAN_S = {"h": 3600, "d": 86_400}


@dataclass(frozen=True)
class MadeKey:
    """A new launch key. `token`: the key itself, empty if the row only trusts jobs of GitHub."""

    name: str
    row: LaunchKey
    token: str = field(repr=False)


def create_launch_key(
    store: Store,
    master: bytes,
    repository: str,
    *,
    actor: str = "",
    usd_max: float | None = None,
    expires_s: int | None = None,
    is_github: bool = False,
    environment: str = "",
    ref: str = "",
) -> MadeKey:
    """Store a new launch key and return it. Raises UsageError for values that no key can have, or if there
    are too many keys.
    """
    if not is_repository(repository):
        raise UsageError(
            f"{repository!r} is not a repository",
            fix=Advice("write ", Option(SettingAdvice.REPOSITORY, "owner/name")),
            code=Exit.USAGE,
        )
    if actor and not is_actor(actor):
        raise UsageError(f"{actor!r} is not the name of a person on GitHub", code=Exit.USAGE)
    if not is_github and (environment or ref):
        raise UsageError(
            "only GitHub can vouch for an environment or a ref",
            fix=Advice("add ", Option(SettingAdvice.GITHUB_OIDC)),
            code=Exit.USAGE,
        )
    if max(len(environment), len(ref)) > TEXT_CHARS_MAX:
        raise UsageError(f"an environment or a ref has at most {TEXT_CHARS_MAX} characters", code=Exit.USAGE)
    name = secrets.token_hex(4)
    row = LaunchKey(repository, store.now_s(), actor, usd_max, expires_s, is_github, environment, ref)

    def added(rows: Mapping[str, LaunchKey]) -> dict[str, LaunchKey]:
        if len(rows) >= KEYS_MAX:
            raise UsageError(
                f"there are {len(rows)} launch keys already",
                fix=Advice("revoke some: ", Call(Operation.LIST_KEYS)),
            )
        return {**rows, name: row}

    _change(store, added)
    return MadeKey(name, row, "" if is_github else launch_token(master, name))


def launch_keys(store: Store) -> Mapping[str, LaunchKey]:
    """Return what each launch key permits, by its name, oldest first."""
    return dict(sorted(store.watch().launch_keys.items(), key=lambda pair: (pair[1].created_s, pair[0])))


def revoke_launch_key(store: Store, name: str) -> None:
    """Delete the key's row, without which it permits nothing. Raises UsageError if there is none."""

    def without(rows: Mapping[str, LaunchKey]) -> dict[str, LaunchKey]:
        if name not in rows:
            raise UsageError(
                f"there is no launch key {name[:50]!r}", fix=Advice(Call(Operation.LIST_KEYS), " shows them")
            )
        return {other: row for other, row in rows.items() if other != name}

    _change(store, without)


def expiry_of(store: Store, text: str) -> int | None:
    """Return the second of the store's time that the text means: `90d` or `12h` from now, or the end of a day
    in UTC; None if it is empty. Raises UsageError for any other text, and for a time that has passed.
    """
    if not text:
        return None
    now_s = store.now_s()
    span = _SPAN.fullmatch(text)
    if span is not None:
        return now_s + int(span[1]) * _SPAN_S[span[2]]
    try:
        until_s = int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) + _SPAN_S["d"]
    except ValueError:
        raise UsageError(
            f"{text[:50]!r} is no time", fix="write 90d, 12h or 2027-01-31", code=Exit.USAGE
        ) from None
    if until_s <= now_s:
        raise UsageError(f"{text} has passed", code=Exit.USAGE)
    return until_s


def _change(store: Store, changed: Callable[[Mapping[str, LaunchKey]], dict[str, LaunchKey]]) -> None:
    """Change the rows, again if a watcher has saved the shared state meanwhile."""
    for _ in range(TRIES_MAX):
        watch = store.watch()
        after = replace(watch, version=watch.version + 1, launch_keys=changed(watch.launch_keys))
        if store.save_watch(after, version=watch.version):
            return
    raise UsageError(
        "the launch keys are being changed by others", fix="try again", code=Exit.EXTERNAL_FAILED
    )
