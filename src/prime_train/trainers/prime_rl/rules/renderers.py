"""Rules about the renderers of a prime-rl config, which tokenise conversations and must know the model's chat
template.
"""

import re
from collections.abc import Iterator
from functools import cache

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.reference.prime_rl_559b4477 import COMMIT
from prime_train.trainers.prime_rl.reference.renderers import ROWS
from prime_train.trainers.prime_rl.rules.models import sees_unsaid
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

NAME_CHARS_MAX = 80
_RENDERER = "orchestrator.renderer"
_ANY_MODELS = ("auto", "default", "custom")
"""Renderers that do not belong to one model family."""


RULES = PrimeRlRules()


@cache
def renderers() -> dict[str, str]:
    """Return the renderer of each model that is recognised by name."""
    found: dict[str, str] = {}
    for text in re.split(r"\n(?! )", ROWS.strip()):
        head, _, names = text.partition(": ")
        renderer, _, owner = head.partition(" ")
        found.update({f"{owner}/{name}": renderer for name in names.split()})
    return found


def _model(settings: ReceivedConfig) -> str | None:
    """Return the name by which the renderer is looked up: the tokenizer's, otherwise the model's."""
    return settings.text("orchestrator.tokenizer.name") or settings.text("orchestrator.model.name")


@RULES.error(
    "PR374",
    "a model without a known renderer",
    why="prime-rl rejects the config: it finds a renderer by itself only for a fixed list of model names, "
    "not for models derived from them.",
    fix=f"add [{_RENDERER}] with a name",
)
def unknown(settings: ReceivedConfig) -> Iterator[Violation]:
    model = _model(settings)
    if (
        not settings.is_complete
        or not _is_looked_for(settings)
        or model is None
        or model in renderers()
        or sees_unsaid(settings)
    ):
        return
    similar = next((name for name in renderers() if name.lower() == model.lower()), None)
    fix = (
        f"write {similar}"
        if similar
        else f'add [{_RENDERER}] with name = "default", or the name of its family\'s renderer'
    )
    tokenizer = "orchestrator.tokenizer.name"
    where = settings.place(tokenizer if settings.text(tokenizer) else "orchestrator.model.name")
    yield violation(
        where, f"{model[:NAME_CHARS_MAX]} has no renderer of its own, and {_RENDERER} does not name one", fix
    )


def _is_looked_for(settings: ReceivedConfig) -> bool:
    """Return whether prime-rl looks up the renderer by name; other versions recognise other models and are
    left out.
    """
    part = settings.spec.trainer.prime_rl if settings.spec is not None else None
    is_off = settings.at(_RENDERER) is not None and not settings.has(_RENDERER)
    return (
        (part is None or part.ref.startswith(COMMIT))
        and not is_off
        and settings.text(f"{_RENDERER}.name") == "auto"
    )


@RULES.warning(
    "PR375",
    "the renderer of another family",
    why="prime-rl accepts the value: the model is prompted and trained with another model's chat template.",
    fix="delete it, or write the model's own renderer",
)
def another(settings: ReceivedConfig) -> Iterator[Violation]:
    name, model = settings.text(f"{_RENDERER}.name"), _model(settings)
    own = renderers().get(model or "")
    if name is not None and own is not None and name not in _ANY_MODELS and _family(name) != _family(own):
        yield violation(
            settings.place(f"{_RENDERER}.name"),
            f"{name} is not the renderer of {model}",
            f'write "{own}", or delete it',
        )


def _family(renderer: str) -> str:
    """Return the renderer's family, such as "qwen" for prime-qwen3 and "glm" for glm-4.5."""
    letters = re.match("[a-z]+", renderer.removeprefix("prime-"))
    return letters[0] if letters is not None else renderer
