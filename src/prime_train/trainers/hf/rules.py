"""Rules about the Trainer of transformers and TRL (TR42x, TR43x): settings that hinder a run from resuming
after a preemption.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from prime_train.estimate import gpus
from prime_train.spec.config_format import COMMAND_CHARS_MAX, flags, words
from prime_train.spec.rule import Document, Rules, Subject, Violation
from prime_train.trainers.hf.settings import SCRIPT, TRL, trainer_settings
from prime_train.trainers.settings.launched import processes

TOPIC = "transformers and TRL"
SHARED_GPU_MAX = 0.8
"""The largest share of a GPU's memory for a server that shares the GPU with the trainer."""
NAMED = "checkpoint-{step}"
_WHY_LAST = (
    "The Trainer keeps only the best checkpoint, and deletes the last one as soon as training ends: if it is "
    "not uploaded by then, its steps are lost."
)
GROUP_MIN = 2
PROCESSES_MAX = 8
_HOPPER = frozenset(("H100", "H200", "GH200", "H800", "H20"))
_STRATEGIES = frozenset(("no", "steps", "epoch", "best"))
_TRL = frozenset(("sft", "dpo", "grpo", "kto", "reward", "rloo"))
_TRL_RESUMES = (1, 15)
"""The first version of TRL whose own scripts pass resume_from_checkpoint on."""
_TRL_PIN = re.compile(r"\btrl(?:\[[\w,-]*\])? ?(==|~=|>=|<=|<) ?(\d{1,4})\.(\d{1,4})")


RULES = Rules(TOPIC, requires="hf")


def _violation(path: tuple[str, ...], message: str, fix: str = "", *, on_key: bool = False) -> Violation:
    return Violation(path, message, fix, on_key=on_key, document="trainer")


def _strategy(config: Document, key: str, default: str) -> str | None:
    """Return the strategy under a key; None if it is not a known one. YAML parses a bare no as false."""
    node = config.at(key)
    value = config.value(key) if node is not None else default
    if value is False:
        return "no"
    return value if isinstance(value, str) and value in _STRATEGIES else None


@RULES.warning(
    "TR421",
    "nothing is saved",
    why="A run that loses its machine starts from step 0.",
    fix="write save_strategy: steps",
)
def nothing_saved(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and _strategy(config, "save_strategy", "steps") == "no":
        yield _violation(("save_strategy",), "nothing is saved before the end")


@RULES.warning(
    "TR422",
    "checkpoints without their optimizer",
    why="A missing optimizer is skipped silently: Adam's moments and the learning-rate schedule start again.",
    fix="delete save_only_model",
)
def model_only(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.value("save_only_model") is True:
        yield _violation(
            ("save_only_model",),
            "checkpoints contain no optimizer state: a run cannot properly resume from one",
        )


@RULES.warning(
    "TR423",
    "no checkpoint before the end",
    why="A run that loses its machine starts from step 0.",
    fix="save every tenth of the steps",
)
def after_the_end(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _strategy(config, "save_strategy", "steps") != "steps":
        return
    every, last = config.number("save_steps"), config.number("max_steps")
    if last is None and subject.spec is not None:
        last = subject.spec.trainer.steps
    if every is not None and last is not None and last > 0 and every > last:
        yield _violation(
            ("save_steps",),
            f"a checkpoint every {every:g} steps in a run of {last:g} steps: none is saved before the end",
        )


@RULES.error(
    "TR424",
    "a best checkpoint without evaluations",
    why="The Trainer raises an error when it is constructed.",
    fix="use the same strategy for both",
)
def best_of_nothing(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or config.value("load_best_model_at_end") is not True:
        return
    key = "eval_strategy" if config.at("eval_strategy") is not None else "evaluation_strategy"
    save, judge = _strategy(config, "save_strategy", "steps"), _strategy(config, key, "no")
    if save is None or judge is None or save in ("best", judge):
        return
    message = f"load_best_model_at_end needs the same save_strategy ({save}) and eval_strategy ({judge})"
    yield _violation(("load_best_model_at_end",), message, "set both to steps")


@RULES.error(
    "TR435",
    "checkpoints between evaluations",
    why="The Trainer raises an error when it is constructed: save_steps must be a multiple of eval_steps.",
    fix="write a multiple of eval_steps",
)
def saved_between(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or config.value("load_best_model_at_end") is not True:
        return
    if {_strategy(config, "save_strategy", "steps"), _strategy(config, "eval_strategy", "no")} != {"steps"}:
        return
    every, judged = config.number("save_steps"), config.number("eval_steps")
    if isinstance(every, int) and isinstance(judged, int) and judged > 0 and every % judged:
        message = (
            f"checkpoints every {every} steps and evaluations every {judged} steps: the "
            "best checkpoint may never have been evaluated"
        )
        yield _violation(
            ("save_steps",), message, f"write a multiple of {judged}, such as {-(-every // judged) * judged}"
        )


@RULES.warning(
    "TR431",
    "a setting that was renamed",
    why="Current versions of the Trainer reject the old name, or never evaluate.",
    fix="write the new name",
)
def renamed(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is not None and subject.trainer.at("evaluation_strategy") is not None:
        yield _violation(
            ("evaluation_strategy",),
            "evaluation_strategy is now called eval_strategy",
            "write eval_strategy",
            on_key=True,
        )


@RULES.error(
    "TR430",
    "groups that do not divide the batch",
    why="TRL raises an error when the trainer is constructed.",
    fix="write a number that divides the batch",
)
def uneven_groups(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if the processes that the command starts, or if it does not say, no number of them on
    one machine, divide the batch into complete groups. Trainer processes are often one fewer than GPUs,
    because a server has one of them.
    """
    config = subject.trainer
    group = config.number("num_generations") if config is not None and _is_trl(subject) else None
    if config is None or not isinstance(group, int):
        return
    if group < GROUP_MIN:
        yield _violation(
            ("num_generations",),
            f"GRPO compares several answers to one prompt; a group of {group} has nothing to compare",
            "8",
        )
        return
    batch, accumulation = (
        config.number("per_device_train_batch_size"),
        config.number("gradient_accumulation_steps"),
    )
    steps = 1 if accumulation is None and config.at("gradient_accumulation_steps") is None else accumulation
    if config.at("generation_batch_size") is not None or config.at("steps_per_generation") is not None:
        return
    if not (isinstance(batch, int) and isinstance(steps, int) and batch > 0 and steps > 0):
        return
    known = processes(subject).value if subject.spec is not None else None
    if all(batch * steps * count % group for count in ([known] if known else range(1, PROCESSES_MAX + 1))):
        spread = f"in {known} processes" if known else f"in 1 to {PROCESSES_MAX} processes"
        message = f"groups of {group} do not divide a batch of {batch} x {steps} per GPU, {spread}"
        yield _violation(("num_generations",), message, f"write a number that divides {batch * steps}")


def _is_trl(subject: Subject) -> bool:
    """Return whether the settings are TRL's own, which no other program changes."""
    settings = trainer_settings(subject)
    return settings is not None and settings.program in (TRL, SCRIPT)


@RULES.error(
    "TR432",
    "a number format that the GPU does not support",
    why="The Trainer raises an error when it is constructed.",
    fix="fp16: true",
)
def no_bf16(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    without = [kind for kind in spec.hardware.gpus if not gpus.has_bf16(kind)] if spec is not None else []
    if config is not None and without and config.value("bf16") is True:
        yield _violation(
            ("bf16",),
            f"{without[0]} does not support bf16",
            "write fp16: true, or choose a newer kind of GPU",
        )


@RULES.warning(
    "TR433",
    "an attention kernel that the GPU does not support",
    why="The kernels are built for other GPUs: the trainer crashes in its first step.",
    fix="write attn_implementation: sdpa",
)
def attention(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    wanted = config.text("attn_implementation") if config is not None else None
    if spec is None or wanted not in ("flash_attention_2", "flash_attention_3"):
        return
    for kind in spec.hardware.gpus:
        family = gpus.plain(gpus.family(kind))
        if family in gpus.WITHOUT_BF16 or (
            wanted == "flash_attention_3" and gpus.facts(kind) is not None and family not in _HOPPER
        ):
            yield _violation(("attn_implementation",), f"{wanted} does not run on {kind}", "write sdpa")
            return


@RULES.warning(
    "TR434",
    "checkpoints in a folder that is not uploaded",
    why="The agent uploads only checkpoints.folder. Checkpoints saved elsewhere are lost with the machine, "
    "and no attempt can resume from them.",
    fix="write --output_dir {checkpoints} in the command, or the same folder in both",
)
def elsewhere(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    folder = config.text("output_dir") if config is not None else None
    if (
        spec is None
        or folder is None
        or "$" in folder
        or "{" in folder
        or any("ln -s" in command for command in spec.setup)
    ):
        return
    saved, looked = posixpath.normpath(folder), posixpath.normpath(spec.checkpoints.folder)
    # The path of the working tree on the machine is not known here.
    is_same = saved == looked or (saved.startswith("/") and saved.endswith(f"/{looked}"))
    if not is_same and not {"cd", "&&", ";"} & set(words(spec.trainer.command)):
        message = (
            f"the trainer saves in {folder[:100]}, but the agent looks for checkpoints "
            "in "
            f"{spec.checkpoints.folder[:100]}"
        )
        yield _violation(("output_dir",), message)


@RULES.warning(
    "TR436",
    "checkpoints by another name",
    why="The agent finds no checkpoint, so none is uploaded and no attempt can resume.",
    fix='write checkpoints: {pattern: "checkpoint-{step}"}',
)
def other_names(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if (
        spec is None
        or spec.checkpoints.pattern == NAMED
        or _is_boxed(spec.trainer.command)
        or any("ln -s" in line for line in spec.setup)
    ):
        return
    message = (
        f"the agent looks for checkpoints named {spec.checkpoints.pattern[:100]}, but the "
        "Trainer "
        f"names them {NAMED}"
    )
    yield Violation(("checkpoints", "pattern"), message)


def _is_boxed(command: str) -> bool:
    """Return whether another program starts the trainer, which may rename its checkpoints."""
    return "--" in words(command)


@RULES.error(
    "TR425",
    "two precisions",
    why="The Trainer raises an error when it is constructed.",
    fix="keep one of them",
)
def two_precisions(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.value("fp16") is True and config.value("bf16") is True:
        yield _violation(("fp16",), "fp16 and bf16 exclude each other", "keep bf16 on GPUs that support it")


@RULES.note(
    "TR426",
    "one checkpoint kept",
    why="It is deleted as soon as the next one is saved, whose upload may not be complete yet.",
    fix="write save_total_limit: 2",
)
def one_kept(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if (
        config is not None
        and config.number("save_total_limit") == 1
        and config.value("load_best_model_at_end") is not True
    ):
        yield _violation(
            ("save_total_limit",), "the only checkpoint is deleted while the next one is still being uploaded"
        )


@RULES.warning(
    "TR438", "a last checkpoint that is deleted at the end", why=_WHY_LAST, fix="write save_total_limit: 2"
)
def last_deleted(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if subject.is_by_flags:
        return
    if (
        config is not None
        and config.number("save_total_limit") == 1
        and config.value("load_best_model_at_end") is True
    ):
        message = (
            "with load_best_model_at_end, the last checkpoint is deleted at the end, maybe before it is seen"
        )
        yield _violation(("save_total_limit",), message)


@RULES.warning(
    "TR439",
    "a last checkpoint that is deleted at the end",
    why=_WHY_LAST,
    fix="write --save_total_limit 2",
    requires="spec",
)
def last_deleted_by_command(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for a command that names no settings file of the Trainer, but has these settings
    itself.
    """
    spec = subject.spec
    if spec is None or (subject.trainer is not None and not subject.is_by_flags):
        return
    given = dict(flags(spec.trainer.command))
    if given.get("save_total_limit") == "1" and given.get("load_best_model_at_end", "false").lower() in (
        "",
        "true",
        "1",
        "yes",
    ):
        message = (
            "with --load_best_model_at_end, --save_total_limit 1 deletes the last checkpoint at the end, "
            "maybe before it is seen"
        )
        yield Violation(("trainer", "command"), message)


@RULES.note(
    "TR427",
    "an automatic batch size",
    why="On another GPU the number of steps differs, and with it the schedule, the checkpoints and the end "
    "of the run.",
    fix="set per_device_train_batch_size and gradient_accumulation_steps",
)
def other_batch(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.value("auto_find_batch_size") is True:
        yield _violation(
            ("auto_find_batch_size",),
            "the batch size depends on the GPU, so an attempt on another GPU counts steps differently",
        )


@RULES.warning(
    "TR428",
    "an inference server that leaves the trainer no memory",
    why="vLLM reserves its share at start-up, and the trainer's first backward pass runs out of memory.",
    fix="write vllm_gpu_memory_utilization: 0.3",
)
def batch_limits(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if (
        config is None
        or config.value("vllm_mode") != "colocate"
        or config.value("vllm_enable_sleep_mode") is True
    ):
        return
    share = config.number("vllm_gpu_memory_utilization")
    if share is not None and share > SHARED_GPU_MAX:
        message = f"vLLM reserves {share:.0%} of a GPU that it shares with the trainer"
        yield _violation(
            ("vllm_gpu_memory_utilization",), message, "write 0.3, or vllm_enable_sleep_mode: true"
        )


@RULES.warning(
    "TR429",
    "a script that never resumes",
    why="Before TRL 1.15, `trl sft`, `trl grpo` and similar scripts call train() without a checkpoint and "
    "ignore resume_from_checkpoint.",
    fix="pin a newer TRL in setup, such as pip install 'trl>=1.15', and write kind: hf",
    requires="spec",
)
def resume_ignored(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.hardware.spot == "never" or not _is_trl_itself(spec.trainer.command):
        return
    if not any(
        sign in ("==", "~=", ">=") or version >= _TRL_RESUMES for sign, version in _trl_pins(spec.setup)
    ):
        message = "trl's own scripts resume from TRL 1.15 on: with an older one, each attempt starts over"
        yield Violation(("trainer", "command"), message)


@RULES.error(
    "TR437",
    "a version of TRL whose scripts never resume",
    why="Before TRL 1.15, `trl sft`, `trl grpo` and similar scripts call train() without a checkpoint and "
    "ignore resume_from_checkpoint.",
    fix="pin TRL 1.15 or later, or use a script of your own that calls "
    "trainer.train(resume_from_checkpoint=...)",
    requires="spec",
)
def too_old_to_resume(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not _is_trl_itself(spec.trainer.command):
        return
    for sign, version in _trl_pins(spec.setup):
        if (version < _TRL_RESUMES and sign != ">=") or (version == _TRL_RESUMES and sign == "<"):
            message = "the scripts of this TRL ignore resume_from_checkpoint: each attempt starts over"
            yield Violation(("trainer", "command"), message)
            return


def _is_trl_itself(command: str) -> bool:
    split = words(command)
    is_module = any(word.startswith("trl.scripts.") for word in split)
    return is_module or any(
        word.rpartition("/")[2] == "trl" and after in _TRL for word, after in pairwise(split)
    )


def _trl_pins(setup: Iterable[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the sign and the version of each requirement of TRL in these commands."""
    for command in setup:
        for found in _TRL_PIN.finditer(command[:COMMAND_CHARS_MAX]):
            yield found[1], (int(found[2]), int(found[3]))
