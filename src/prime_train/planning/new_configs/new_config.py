"""Makes the config files of a new run, for prime-rl or for the user's own script, from a few answers."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.checks.validate import check_run_config
from prime_train.errors import UsageError
from prime_train.estimate.models.dimensions import Model
from prime_train.estimate.models.hardware_presets import known_preset
from prime_train.estimate.models.lookup import resolve_model
from prime_train.estimate.models.registry import ModelEntry, ModelKind
from prime_train.exit_codes import Exit
from prime_train.launch.launch_config import InvalidConfig
from prime_train.planning.models import registry
from prime_train.planning.new_configs import text as templates
from prime_train.planning.new_configs.own_script import Own, config, default_command, name_of
from prime_train.planning.new_configs.plan import GPUS, How, InitChoices, Wanted, settings_for
from prime_train.planning.new_configs.ready_configs import ready_config
from prime_train.planning.new_configs.text import INCLUDED, KNOWN_REF
from prime_train.spec.finding import Severity, has_errors
from prime_train.spec.reader import read_text

DEFAULT_USD = 50.0
PRIME_RL = "prime_rl"
"""The kind of trainer whose own config is written, too."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_ENVIRONMENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_REF = re.compile(r"[0-9a-f]{8,40}")

Files = dict[Path, str]
"""Texts by path, the run's own config first."""


@dataclass(frozen=True)
class Answers:
    """What is known of a new run; empty or 0: not given."""

    model: str
    preset: str
    gpus: int
    environment: str
    usd: float


def implied_kind(given: Answers, command: str) -> str | None:
    """Return the kind of trainer that the answers imply, or None if they imply none."""
    if command:
        return "command"
    return PRIME_RL if given.model or given.preset or given.environment else None


def suffices(given: Answers, command: str, kind: str | None) -> bool:
    """Return whether a config can be written from these answers without asking for more."""
    return bool(given.model and given.preset) or bool(command) or kind not in (None, PRIME_RL)


def script_of(kind: str, given: Answers, command: str, *, steps: int, name: str) -> Own:
    """Return the choices for a run of a command, by default one of its kind's own. Raises UsageError for an
    answer that is not possible.
    """
    gpu = known_preset(given.preset).kind if given.preset else ""
    if given.gpus not in (0, 1, *GPUS):
        raise UsageError(
            f"{given.gpus} GPUs: no machine for rent has that number of GPUs", fix="write one of 1, 2, 4, 8"
        )
    own = Own(
        kind,
        command or default_command(kind, steps),
        steps,
        given.usd or DEFAULT_USD,
        gpu,
        given.gpus or 1,
        name,
    )
    _check_name(name_of(own))
    return own


def script_files(own: Own, folder: Path) -> Files:
    """Return the text of the run's config by its path. Raises InvalidConfig if a launch would refuse the
    config.
    """
    path = folder / f"{name_of(own)}.yaml"
    text = config(own)
    found, sources = check_run_config(read_text(text, str(path)))
    if has_errors(found):
        raise InvalidConfig(
            tuple(finding for finding in found if finding.severity is Severity.ERROR), sources
        )
    return {path: text}


def ready_files(preset: str, folder: Path, *, name: str, usd: float) -> Files:
    """Return the text of a config that is ready to run by its path. Raises UsageError if there is none of
    this name.
    """
    made, text = ready_config(preset, name=name, usd=usd)
    _check_name(made)
    return {folder / f"{made}.yaml": text}


def prime_rl_settings(given: Answers, *, lora: bool | None, steps: int, ref: str, name: str) -> InitChoices:
    """Return the settings of a prime-rl run. `lora`: True trains adapters, False all weights; None trains all
    weights if they fit the hardware, and adapters otherwise. Raises UsageError for an answer that is not
    possible, and if the model does not fit the hardware.
    """
    how = How.AUTO if lora is None else How.LORA if lora else How.FULL
    wanted = _wanted(given, how, steps=steps, ref=ref, name=name)
    settings = settings_for(wanted)
    if isinstance(settings, str):
        raise UsageError(settings, fix=_larger(wanted), code=Exit.FINDINGS)
    _check_name(settings.name)
    return settings


def prime_rl_files(settings: InitChoices, folder: Path) -> Files:
    """Return the texts of the run's config and of prime-rl's config, by path."""
    run_folder = folder / settings.name
    return {
        folder / f"{settings.name}.yaml": templates.config(settings, run_folder.as_posix()),
        run_folder / "rl.toml": templates.trainer(settings),
    }


def to_do(settings: InitChoices) -> list[str]:
    """Return what has to be done before the launch of a prime-rl run."""
    wanted, steps = settings.wanted, []
    if wanted.environment != INCLUDED:
        steps.append(f"add a command under setup that installs {wanted.environment} into ../prime-rl")
    if wanted.gated:
        steps.append("set HF_TOKEN where the control plane runs: the model is gated")
    return steps


def existing(files: Files) -> list[Path]:
    """Return those of the files that exist."""
    return [path for path in files if path.exists()]


def save_files(files: Files, *, replace: bool) -> None:
    """Write the files. Raises UsageError, with nothing written, if one exists and `replace` is not set."""
    there = existing(files) if not replace else []
    if there:
        fix = Advice("choose another ", Option(SettingAdvice.NAME), ", or add ", Option(SettingAdvice.FORCE))
        raise UsageError(f"{there[0]} already exists and was not changed", fix=fix)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def checked_model(text: str) -> tuple[Model, ModelEntry | None]:
    """Return the model's shape, and its entry in the registry if there is one. Raises UsageError if the model
    is unknown or not for text.
    """
    known = registry()
    entry, shape = known.entry(text), resolve_model(text) if _ID.fullmatch(text) else None
    if entry is not None and entry.kind is ModelKind.VISION_LANGUAGE:
        raise UsageError(
            f"{text} is a vision-language model, but init writes configs only for text models",
            fix="choose a text model of its family",
        )
    if entry is not None and entry.kind is ModelKind.PUZZLE:
        raise UsageError(
            f"{text} is no language model, and prime-rl does not train it",
            fix=Advice("write a config for it with ", Option(SettingAdvice.KIND, "trm")),
        )
    if shape is None:
        similar = known.similar(text)
        fix = (
            f"did you mean {', '.join(similar)}?"
            if similar
            else "write owner/name with the size in the name, such as Qwen/Qwen3-4B"
        )
        raise UsageError(f"the model {text} is unknown, and its name does not contain its size", fix=fix)
    return shape, entry


def checked_gpus(count: int) -> int:
    """Return the number of GPUs. Raises UsageError if prime-rl cannot use so many."""
    if count not in GPUS:
        why = (
            "prime-rl needs at least one GPU for training and one for generation"
            if count == 1
            else "no machine for rent has that number of GPUs, or the number is odd"
        )
        raise UsageError(f"{count} GPUs: {why}", fix=f"write one of {', '.join(map(str, GPUS))}")
    return count


def checked_environment(text: str) -> str:
    if not _ENVIRONMENT.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not an environment", fix="write its id, such as reverse-text")
    return text


def checked_usd(text: str) -> float:
    try:
        usd = float(text.strip().lstrip("$"))
    except ValueError:
        usd = 0.0
    if not 0 < usd < 1e6:
        raise UsageError(f"{text} is not an amount of dollars", fix="write dollars, such as 50")
    return usd


def _wanted(given: Answers, how: How, *, steps: int, ref: str, name: str) -> Wanted:
    if ref and not _REF.fullmatch(ref):
        raise UsageError(
            f"{ref} is not a commit", fix="write 8 to 40 hexadecimal digits, as git rev-parse prints them"
        )
    shape, entry = checked_model(given.model)
    return Wanted(
        model_id=given.model,
        shape=shape,
        preset=known_preset(given.preset),
        gpus=checked_gpus(given.gpus or GPUS[0]),
        environment=checked_environment(given.environment or INCLUDED),
        how=how,
        usd=given.usd or DEFAULT_USD,
        steps=steps,
        ref=ref or KNOWN_REF,
        name=name,
        context=entry.context if entry is not None else 0,
        gated=entry is not None and entry.gated != "no",
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name", fix="use at most 32 lower-case letters, digits and inner hyphens"
        )


def _larger(wanted: Wanted) -> Advice:
    for count in GPUS:
        if count > wanted.gpus and not isinstance(settings_for(replace(wanted, gpus=count)), str):
            return Advice("use ", Option(SettingAdvice.GPUS, str(count)))
    if wanted.how is How.FULL and not isinstance(settings_for(replace(wanted, how=How.LORA)), str):
        return Advice("train only LoRA adapters: ", Option(SettingAdvice.LORA))
    return Advice(
        "use larger GPUs, such as ", Option(SettingAdvice.PRESET, "h200-141gb"), ", or a smaller model"
    )
