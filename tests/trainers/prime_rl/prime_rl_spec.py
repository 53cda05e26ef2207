"""Specs of kind prime_rl for tests."""

from typing import Any

from prime_train.spec.spec import RunSpec

REF = "559b4477" + "1" * 32
FOLDER = "outputs/tiny"


def prime_rl_spec(
    *,
    steps: int | None = 20,
    trainer: dict[str, Any] | None = None,
    part: dict[str, Any] | None = None,
    **more: Any,
) -> RunSpec:
    """Return the smallest spec with the given additions: `part` goes into trainer.prime_rl."""
    section = {
        "kind": "prime_rl",
        "steps": steps,
        "prime_rl": {"config": "rl.toml", "ref": REF} | (part or {}),
    }
    return RunSpec.model_validate(
        {"name": "tiny", "budget": {"usd": 5.0}, "trainer": section | (trainer or {})} | more
    )
