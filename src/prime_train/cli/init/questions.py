"""The questions of `init`, with explanations, and the checks of their answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from prime_train.estimate.models.hardware_presets import Preset
    from prime_train.estimate.models.registry import Entry
    from prime_train.estimate.models.table import Model

TRIES_MAX = 5
DEFAULT_MODEL, DEFAULT_USD = "Qwen/Qwen3-4B", 50.0
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_ENVIRONMENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Answers:
    """Answers to the questions of `init`; empty or 0: not given."""

    model: str
    preset: str
    gpus: int
    environment: str
    usd: float


def answers(given: Answers) -> Answers:
    """Return the answers, asking for those that are not given."""
    from prime_train.estimate.models.hardware_presets import DEFAULT

    model = given.model or ask_for(_MODEL_WORDS, "Model", DEFAULT_MODEL, checked_model)
    preset = given.preset or ask_for(_preset_words(), "Hardware", DEFAULT.name, checked_preset)
    gpus = given.gpus or int(ask_for(_GPU_WORDS, "GPUs", "2", lambda text: checked_gpus(_whole(text))))
    environment = given.environment or ask_for(_ENVIRONMENT_WORDS, "Environment", "reverse-text", checked_environment)
    usd = given.usd or float(ask_for(USD_WORDS, "Dollars", f"{DEFAULT_USD:g}", checked_usd))
    return Answers(model, preset, gpus, environment, usd)


def checked_model(text: str) -> "tuple[Model, Entry | None]":
    """Return the model's shape, and its entry in the registry if there is one. Raises UsageError if the model is unknown or not for
    text."""
    from prime_train.estimate.models.lookup import understand
    from prime_train.estimate.models.registry import Kind
    from prime_train.operations.models import registry

    known = registry()
    entry, shape = known.entry(text), understand(text) if _ID.fullmatch(text) else None
    if entry is not None and entry.kind is Kind.VISION_LANGUAGE:
        raise UsageError(f"{text} is a vision-language model: what is written here is for text", fix="take a text model of its family")
    if shape is None:
        near = known.near(text)
        fix = f"did you mean {', '.join(near)}?" if near else "write owner/name, with its size: Qwen/Qwen3-4B"
        raise UsageError(f"the model {text} is not known, and its name does not tell its size", fix=fix)
    return shape, entry


def checked_preset(text: str) -> "Preset":
    from prime_train.estimate.models.hardware_presets import near, preset

    found = preset(text)
    if found is None:
        raise UsageError(f"the hardware {text} is not known", fix=f"write one of {', '.join(near(text))}")
    return found


def checked_gpus(count: int) -> int:
    from prime_train.configs.templates.plan import GPUS

    if count not in GPUS:
        why = "prime-rl needs one to train and one to generate" if count == 1 else "no machine for rent has so many, or they do not halve"
        raise UsageError(f"{count} GPUs: {why}", fix=f"write one of {', '.join(map(str, GPUS))}")
    return count


def checked_environment(text: str) -> str:
    if not _ENVIRONMENT.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is no environment", fix="write its id, such as reverse-text")
    return text


def checked_usd(text: str) -> float:
    try:
        usd = float(text.strip().lstrip("$"))
    except ValueError:
        usd = 0.0
    if not 0 < usd < 1e6:
        raise UsageError(f"{text}: no amount", fix="write dollars, such as 50")
    return usd


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0


def ask_for(words: str, question: str, default: str, check: Callable[[str], object]) -> str:
    """Print `words`, ask until an answer passes `check`, and return it; the error of each refused answer is printed. Raises UsageError
    after `TRIES_MAX` answers."""
    typer.echo(f"\n{words}")
    for _ in range(TRIES_MAX):
        answer = str(typer.prompt(question, default=default)).strip()
        try:
            check(answer)
        except UsageError as error:
            typer.echo(f"  {error}\n  {error.fix}")
            continue
        return answer
    raise UsageError(f"{TRIES_MAX} answers to {question} were none", fix="prime-train init --help shows the options")


def _preset_words() -> str:
    from prime_train.estimate.models.hardware_presets import PRESETS

    rows = "\n".join(f"  {preset.name:<11} {preset.gb:>4} GB  {preset.good_for}" for preset in PRESETS)
    return f"Which GPUs? Their memory decides what fits. `prime-train find` tells which\nmachine is the cheapest now.\n{rows}"


KIND_WORDS = (
    "What trains? prime_rl: reinforcement learning with prime-rl, whose config is\n"
    "written too. command: a script of yours. torchrun: one that torchrun starts, a\n"
    "process for each GPU. hf: one with a Trainer of Hugging Face in it."
)
COMMAND_WORDS = (
    "What starts it? As on the command line, from this folder, which is what the\n"
    "machine gets. It has to save by itself, and to go on from what it saved."
)
_MODEL_WORDS = (
    "Which model? Its id at Hugging Face. A small one shows sooner whether the rest\n"
    "is right: 4B learns most tasks that 8B does. `prime-train models list` shows\n"
    "those that are known, and what goes wrong with them."
)
_GPU_WORDS = (
    "How many? Half of them train, half generate answers. Two are enough for 4B on\n"
    "80 GB; more make it faster. All of them are in one machine: 2, 4 or 8."
)
_ENVIRONMENT_WORDS = (
    "What is it to learn? An environment gives the prompts and judges the answers.\n"
    "reverse-text comes with prime-rl and shows within 20 steps whether everything\n"
    "works; others have to be installed, under setup."
)
USD_WORDS = "What may it cost at most? All attempts together: at 80 % you are told, at\n100 % it is saved and stopped."
