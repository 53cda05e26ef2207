"""Suggests the right key for a wrong one: similar in spelling, from another section, or under the name that
other tools use.
"""

from collections.abc import Sequence
from functools import cache
from typing import get_args

from prime_train.spec.spec import RunSpec, SpecSection
from prime_train.text.nearest import nearest

LEVELS_MAX = 6

ELSEWHERE = {
    "cmd": "trainer.command",
    "script": "trainer.command",
    "entrypoint": "trainer.command",
    "run": "trainer.command",
    "max_steps": "trainer.steps",
    "workdir": "trainer.code.folder",
    "branch": "trainer.code.ref",
    "gpu": "hardware.gpus",
    "gpu_type": "hardware.gpus",
    "gpu_count": "hardware.count",
    "num_gpus": "hardware.count",
    "disk": "hardware.disk_gib",
    "max_price": "hardware.usd_per_hour_max",
    "price": "hardware.usd_per_hour_max",
    "max_usd": "budget.usd",
    "cost": "budget.usd",
    "max_cost": "budget.usd",
    "max_hours": "budget.hours",
    "timeout": "budget.hours",
    "env": "environment",
    "envs": "environment",
    "variables": "environment",
    "save_every": "checkpoints.every_steps",
    "output_dir": "checkpoints.folder",
    "slack": "alerts.webhook",
    "verify": "verification",
    "resources": "hardware",
    "eval": "after",
    "evaluate": "after",
    "evaluation": "after",
    "post_training": "after",
}
"""Keys of other tools, and the keys of prime-train that they correspond to."""

_AFTER = {
    "command": "run",
    "cmd": "run",
    "script": "run",
    "environment": "env",
    "timeout": "timeout_s",
    "eval_every": "evaluate_every",
}
INSTEAD: dict[tuple[str, ...], dict[str, str]] = {("after",): _AFTER}
"""Keys that a section has under another name, by section."""

EXAMPLES = {
    "name": "name: my-run",
    "trainer": "trainer: {command: python train.py}",
    "trainer.command": "command: python train.py",
    "budget": "budget: {usd: 20}",
    "budget.usd": "usd: 20",
    "smoke.command": "command: python train.py --steps 2",
    "wandb.project": "project: my-project",
    "after.name": "name: evaluate",
    "after.run": "run: python evaluate.py",
    "verification.path": 'path: "data/**/*.json"',
    "health.log_rules.pattern": "pattern: loss is nan",
}


def keys_of(section: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of a section, such as ("trainer", "code"), or of the top level for (). Empty if there
    is no such section.
    """
    return _sections().get(".".join(section), ())


def key(section: Sequence[str], wrong: str) -> str | None:
    """Return the right key for `wrong`, with its section if that is a different one; None if there is no good
    guess.
    """
    here = keys_of(section)
    plain = wrong.lower().replace("-", "_")
    own = INSTEAD.get(tuple(section), {}).get(plain)
    if own is not None:
        return own
    close = nearest(plain, here)
    if close:
        return close[0]
    known = ELSEWHERE.get(plain)
    if known is not None:
        return known.removeprefix(".".join(section) + ".")
    # A key of the same or a similar name in another section, such as `usd`.
    leaves = {name: path for path, names in reversed(_sections().items()) for name in names if path}
    there = nearest(plain, leaves)
    if there:
        return f"{leaves[there[0]]}.{there[0]}"
    inside = [name for name in here if len(plain) >= 3 and (plain in name or name in plain)]
    if inside:
        return inside[0]
    return next(iter(nearest(plain, _sections()[""])), None)


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    """Return every section of the spec with its keys, outer sections first."""
    found: dict[str, tuple[str, ...]] = {}
    level: list[tuple[str, type[SpecSection]]] = [("", RunSpec)]
    for _ in range(LEVELS_MAX):
        below: list[tuple[str, type[SpecSection]]] = []
        for path, part in level:
            found[path] = tuple(part.model_fields)
            below += [
                (f"{path}.{name}".lstrip("."), p)
                for name, f in part.model_fields.items()
                for p in _parts(f.annotation)
            ]
        level = below
    return found


def _parts(annotation: object) -> list[type[SpecSection]]:
    """Return the classes of spec sections in an annotation such as `SmokeSpec | None` or `tuple[VerifySpec,
    ...]`.
    """
    if isinstance(annotation, type) and issubclass(annotation, SpecSection):
        return [annotation]
    return [part for argument in get_args(annotation) for part in _parts(argument)]
