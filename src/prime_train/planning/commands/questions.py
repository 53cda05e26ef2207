"""The questions of `init`, with explanations."""

import textwrap
from collections.abc import Callable

import typer

from prime_train.errors import UsageError
from prime_train.estimate.models.hardware_presets import DEFAULT, PRESETS, known_preset
from prime_train.planning.new_configs.new_config import (
    DEFAULT_USD,
    Answers,
    checked_environment,
    checked_gpus,
    checked_model,
    checked_usd,
)
from prime_train.trainers.registry import TRAINERS

TRIES_MAX = 5
DEFAULT_MODEL = "Qwen/Qwen3-4B"


def answers(given: Answers) -> Answers:
    """Return the answers, asking for those that are not given."""
    model = given.model or ask_for(_MODEL_WORDS, "Model", DEFAULT_MODEL, checked_model)
    preset = given.preset or ask_for(_preset_words(), "Hardware", DEFAULT.name, known_preset)
    gpus = given.gpus or int(ask_for(_GPU_WORDS, "GPUs", "2", lambda text: checked_gpus(_integer(text))))
    environment = given.environment or ask_for(
        _ENVIRONMENT_WORDS, "Environment", "reverse-text", checked_environment
    )
    usd = given.usd or float(ask_for(USD_WORDS, "Dollars", f"{DEFAULT_USD:g}", checked_usd))
    return Answers(model, preset, gpus, environment, usd)


def _integer(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0


def ask_for(words: str, question: str, default: str, check: Callable[[str], object]) -> str:
    """Print `words`, ask until an answer passes `check`, and return it; the error of each refused answer is
    printed. Raises UsageError after `TRIES_MAX` answers.
    """
    typer.echo(f"\n{words}")
    for _ in range(TRIES_MAX):
        answer = str(typer.prompt(question, default=default)).strip()
        try:
            check(answer)
        except UsageError as error:
            typer.echo(f"  {error}\n  {error.fix}")
            continue
        return answer
    raise UsageError(
        f"{TRIES_MAX} answers to {question} were invalid", fix="prime-train init --help shows the options"
    )


def _preset_words() -> str:
    rows = "\n".join(f"  {preset.name:<11} {preset.gb:>4} GB  {preset.good_for}" for preset in PRESETS)
    return (
        "Which GPUs? Their memory decides what fits. `prime-train find` shows which\nmachine is "
        "the "
        f"cheapest now.\n{rows}"
    )


def kind_words() -> str:
    rows = [f"{kind}: {row.summary}" for kind, row in TRAINERS.items()]
    wrapped = "\n".join(textwrap.fill(row, 79, initial_indent="  ", subsequent_indent="    ") for row in rows)
    return f"Which trainer? One with a name of its own knows how its library saves and\nresumes.\n{wrapped}"


COMMAND_WORDS = (
    "Which command starts it? Write it as you would in a shell in this folder, which\n"
    "is copied to the machine. The script must save checkpoints and resume from\n"
    "them."
)
_MODEL_WORDS = (
    "Which model? Write its id at Hugging Face. A small model shows sooner whether\n"
    "the setup works: 4B learns most tasks that 8B does. `prime-train models list`\n"
    "shows the known models and their known issues."
)
_GPU_WORDS = (
    "How many GPUs? Half of them train, half generate answers. Two are enough for 4B\n"
    "on 80 GB; more are faster. All are in one machine: 2, 4 or 8."
)
_ENVIRONMENT_WORDS = (
    "What should it learn? An environment gives the prompts and scores the answers.\n"
    "reverse-text comes with prime-rl and shows within 20 steps whether everything\n"
    "works; other environments must be installed by a command under setup."
)
USD_WORDS = (
    "How many dollars may all attempts together cost? You are notified at 80 %, and\nthe run "
    "is saved and stopped at 100 %."
)
