"""What of a config determines the numbers that a training results in, and its seed."""

import hashlib
import json
import re

from prime_train.spec.spec import RunSpec

_SEED = re.compile(r"(?i)(?<![a-z])(seed)(\s*=\s*|\s+)(\d{1,18})(?![\w.])")
"""A seed on a command line, such as `--seed 3`, `--trainer.seed=3` or `seed=3`."""
_SEED_NAME = re.compile(r"(?i)(?:.*_)?seed")


def seed_of(spec: RunSpec) -> int | None:
    """Return the seed that the config gives on the trainer's command line, or in a variable whose name ends in SEED; None if it gives none,
    or several that differ."""
    seeds = {int(found[3]) for text in _texts(spec) for found in _SEED.finditer(text)}
    seeds |= {int(value) for name, value in spec.environment.items() if _SEED_NAME.fullmatch(name) and _is_seed(value)}
    return seeds.pop() if len(seeds) == 1 else None


def settings_digest(spec: RunSpec, start: str = "") -> str:
    """Return a hash of what determines the numbers of a run, apart from the seed: SHA-256, as hex digits. That is what the config says
    about the training and the steps after it, and `start`, the checkpoint of another run that it started from, empty for none. Names,
    budgets, machines and limits are left out."""
    values = json.loads(spec.model_dump_json(include={"trainer", "setup"}))
    if spec.after:
        values["after"] = [[one.name, _without_seed(one.run), one.env, one.evaluate_every] for one in spec.after]
    if start:
        values["start"] = start
    texts = {name: _without_seed(text) for name, text in (("command", spec.trainer.command),)}
    values["trainer"] |= texts
    if spec.trainer.prime_rl is not None:
        values["trainer"]["prime_rl"]["overrides"] = _without_seed(" ".join(spec.trainer.prime_rl.overrides))
        del values["trainer"]["prime_rl"]["run_name"]
    values["environment"] = {name: "" if _SEED_NAME.fullmatch(name) else value for name, value in spec.environment.items()}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _texts(spec: RunSpec) -> tuple[str, ...]:
    overrides = " ".join(spec.trainer.prime_rl.overrides) if spec.trainer.prime_rl is not None else ""
    return spec.trainer.command, overrides


def _without_seed(text: str) -> str:
    return _SEED.sub(r"\1\2*", text)


def _is_seed(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 18
