"""Protect a checkpoint from every clean-up, or remove that protection."""

from prime_train.buckets.keys import parse_pin_key, pin_key, pin_prefix
from prime_train.checkpoints.lookup import Found, of_step
from prime_train.checkpoints.manifest import Manifest
from prime_train.errors import UsageError


def pin(found: Found, step: int) -> tuple[Manifest, int]:
    """Pin the checkpoint of `step`. Returns it, and how many of its chunks are missing. Raises UsageError if
    there is none.
    """
    manifest = of_step(found, step)
    found.bucket.put(pin_key(found.run_id, step, manifest.attempt), b"")
    return manifest, len(found.catalog.missing(manifest))


def unpin(found: Found, step: int) -> list[int]:
    """Unpin the checkpoints of `step` and return the numbers of their attempts. Raises UsageError if none is
    pinned.
    """
    pins = [
        place
        for stat in found.bucket.list(pin_prefix(found.run_id))
        if (place := parse_pin_key(found.run_id, stat.key))
    ]
    attempts = [attempt for pinned, attempt in pins if pinned == step]
    if not attempts:
        steps = ", ".join(str(pinned) for pinned in sorted({pinned for pinned, _ in pins}))
        raise UsageError(
            f"step {step} of {found.run_id} is not pinned",
            fix=f"pinned steps: {steps}" if steps else "nothing is",
        )
    for attempt in attempts:
        found.bucket.delete(pin_key(found.run_id, step, attempt))
    return attempts
