"""Rules about the output folder and the resume settings of a prime-rl config, including those that only
prime-train may set.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.prime_rl.conventions import METRICS
from prime_train.trainers.prime_rl.rules.rule import TOPIC, PrimeRlRules, settings_of, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_STEP_FOLDER = r"step_\d+"
_DIR = "resume.dir"


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()
WITH_FILES = Rules(TOPIC, requires="prime_rl")


@RULES.error("PR341", "two checkpoints to resume from", why=_REFUSES, fix="keep one of them")
def both(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.spec is None and settings.has("resume.step") and settings.has(_DIR):
        yield violation(
            ("resume", "step"),
            "resume has both step and dir, but dir already contains the step in its name",
            "keep one of them",
        )


@RULES.error(
    "PR342", "a resume folder that is not a checkpoint", why=_REFUSES, fix="write a folder named step_N"
)
def folder_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    folder = settings.text(_DIR)
    if (
        settings.spec is None
        and folder is not None
        and not re.fullmatch(_STEP_FOLDER, PurePosixPath(folder).name)
    ):
        yield violation(
            ("resume", "dir"),
            f"{_DIR} must end in a checkpoint folder such as step_50, got {folder!r}",
            "write the step's folder",
        )


@WITH_FILES.note(
    "PR343",
    "a resume checkpoint that does not exist",
    why="prime-rl accepts the config, but crashes when it looks for the files.",
    fix="write one that exists",
)
def absent(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for a resume folder within the working tree that does not exist, if the tree's files
    are known.
    """
    settings = settings_of(subject)
    folder = settings.text(_DIR) if settings is not None and settings.spec is None else None
    if settings is None or settings.has("resume.step") or folder is None or subject.files is None:
        return
    path = PurePosixPath(folder)
    is_checkpoint = (
        re.fullmatch(_STEP_FOLDER, path.name) and not path.is_absolute() and ".." not in path.parts
    )
    if is_checkpoint and not any(file == str(path) or file.startswith(f"{path}/") for file in subject.files):
        yield violation(
            ("resume", "dir"), f"{_DIR} {folder!r} does not exist", "write an existing checkpoint folder"
        )


@RULES.note(
    "PR344",
    "a resume without a run name",
    why="prime-rl generates a new name on every launch, finds no checkpoint there, and silently trains from "
    "scratch.",
    fix="add a [run] with a name",
)
def unnamed(settings: ReceivedConfig) -> Iterator[Violation]:
    named = settings.has("run.name") or settings.has("run.dir") or settings.has(_DIR)
    if settings.spec is None and settings.has("resume") and not named:
        yield violation(
            ("resume",),
            "without run.name, each launch uses a new folder and finds no checkpoint to resume from",
            on_key=True,
        )


@RULES.error(
    "PR345",
    "a run name that points outside its folder",
    why="prime-rl accepts the value, and writes, deletes and resumes outside the output folder.",
    fix="write a plain name",
)
def climbs(settings: ReceivedConfig) -> Iterator[Violation]:
    for name in ("run.name", "run.dir"):
        value = settings.text(name)
        if value is not None and (".." in PurePosixPath(value).parts or PurePosixPath(value).is_absolute()):
            yield violation(
                settings.place(name),
                f"{name} {value[:60]!r} points outside the output folder",
                "write a plain name",
            )


@RULES.error(
    "PR346",
    "a setting that prime-train must control",
    why="Recovery relies on this setting: otherwise the run would start over, lose its checkpoints, or show "
    "no progress.",
    fix="delete it",
)
def ours(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield violations for settings that would break a launch; settings that the launch itself overrides are
    harmless.
    """
    if settings.spec is None:
        return
    if settings.has("resume"):
        yield violation(
            ("resume",),
            "resume must not be set in the config: prime-train chooses the checkpoint from the bucket",
            "delete it",
            on_key=True,
        )
    for name, why in (
        ("clean", "it deletes the run's folder, including its checkpoints"),
        ("dry_run", "nothing would be trained"),
    ):
        if settings.is_on(name):
            yield violation((name,), f"{name} must not be set in the config: {why}", "delete it")
    for name in ("ckpt.output_dir", "trainer.ckpt.output_dir"):
        if settings.has(name):
            yield violation(
                tuple(name.split(".")),
                f"{name} splits a checkpoint: the orchestrator's half would be saved in the run's folder",
                "delete it",
            )
    for side in ("", "trainer.", "orchestrator."):
        name = f"{side}monitors.file"
        path = settings.text_at((*name.split("."), "path"))
        if (settings.at(name) is not None and not settings.has(name)) or path not in (None, METRICS):
            where = (*name.split("."), "path") if path is not None else tuple(name.split("."))
            yield violation(
                where,
                f"{name} prevents {METRICS} from being written, which progress is read from",
                "delete it",
            )
