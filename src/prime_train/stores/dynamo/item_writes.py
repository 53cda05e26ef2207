"""Builds the actions that write a run and its head: to a lease item while it is awake, to the run's own item
while it is at rest.
"""

from typing import Any

from prime_train.stores.dynamo.item_values import Head, given, head_values, run_values
from prime_train.stores.dynamo.schema import Value, lease_key, run_key
from prime_train.stores.dynamo.table import Write, deleting, putting, updating

Action = dict[str, Any]

_SAME_RUN = "run_version = :run_was"
_SAME_BOTH = f"{_SAME_RUN} AND lease_version = :lease_was"


def created(head: Head, run_text: str) -> list[Action]:
    """Return the actions that create a run on the condition that it does not exist."""
    return [
        _run_item(head, run_text, Write(condition="attribute_not_exists(PK)")),
        *_lease_item(None, head, None),
    ]


def changed(before: Head, after: Head, run_text: str, *, lease_version: int | None = None) -> list[Action]:
    """Return the actions that change a run from `before` to `after`, on condition that its version has not
    changed. With `lease_version`, the lease is written too, on condition that it still has that version.
    """
    unless_moved = (
        Write(condition=_SAME_RUN, values={"run_was": before.run_version}) if before.at_rest else None
    )
    return [_run_item(after, run_text, unless_moved), *_lease_item(before, after, lease_version)]


def woken(before: Head, after: Head) -> Write:
    """Return the write by which `wake` changes the lease item of an awake run."""
    return _setting(run_values(after), _SAME_RUN, {"run_was": before.run_version})


def _is_awake(head: Head) -> bool:
    return head.lease.open or head.next_check_s is not None


def _run_item(head: Head, run_text: str, write: Write | None) -> Action:
    own: dict[str, Value] = {"run": run_text, "saved_version": head.saved_version}
    return putting(
        run_key(head.lease.run_id), own if _is_awake(head) else own | given(head_values(head)), write
    )


def _lease_item(before: Head | None, after: Head, lease_version: int | None) -> list[Action]:
    key = lease_key(after.lease.run_id)
    if before is None or before.at_rest:
        return [putting(key, given(head_values(after)))] if _is_awake(after) else []
    if not _is_awake(after):
        # The whole item moves, so no part of it may have changed.
        return [
            deleting(
                key,
                Write(
                    condition=_SAME_BOTH,
                    values={"run_was": before.run_version, "lease_was": before.lease.version},
                ),
            )
        ]
    if lease_version is None:
        return [updating(key, woken(before, after))]
    return [
        updating(
            key,
            _setting(
                head_values(after), _SAME_BOTH, {"run_was": before.run_version, "lease_was": lease_version}
            ),
        )
    ]


def _setting(values: dict[str, Value | None], condition: str, expected: dict[str, Value]) -> Write:
    """Return an update that sets the attributes to these values; None removes one."""
    kept = given(values)
    gone = [name for name in values if name not in kept]
    sets = "SET " + ", ".join(f"{name} = :{name}" for name in kept)
    return Write(f"{sets} REMOVE {', '.join(gone)}" if gone else sets, condition, kept | expected)
