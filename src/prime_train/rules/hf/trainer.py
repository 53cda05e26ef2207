"""Rules about the Trainer of transformers and TRL (TR42x, TR43x): settings that hinder a run from resuming after a preemption."""

import posixpath
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from prime_train.core.finding import Severity
from prime_train.estimate import gpus
from prime_train.rules.rule import Document, Rule, Subject, Violation
from prime_train.rules.words import words

FAMILY = "transformers and TRL"
SHARED_GPU_MAX = 0.8
"""The largest share of a GPU's memory for a server that shares the GPU with the trainer."""
NAMED = "checkpoint-{step}"
GROUP_MIN = 2
PROCESSES_MAX = 8
_HOPPER = frozenset(("H100", "H200", "GH200", "H800", "H20"))
_STRATEGIES = frozenset(("no", "steps", "epoch", "best"))
_TRL = frozenset(("sft", "dpo", "grpo", "kto", "reward", "rloo"))


def _violation(path: tuple[str, ...], message: str, fix: str = "", *, on_key: bool = False) -> Violation:
    return Violation(path, message, fix, on_key=on_key, document="trainer")


def _strategy(config: Document, key: str, default: str) -> str | None:
    """Return the strategy under a key; None if it is not a known one. YAML parses a bare no as false."""
    node = config.at(key)
    value = config.value(key) if node is not None else default
    if value is False:
        return "no"
    return value if isinstance(value, str) and value in _STRATEGIES else None


def _nothing_saved(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and _strategy(config, "save_strategy", "steps") == "no":
        yield _violation(("save_strategy",), "nothing is saved before the end")


def _model_only(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.value("save_only_model") is True:
        yield _violation(("save_only_model",), "checkpoints hold no optimizer: a run cannot go on from one")


def _after_the_end(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _strategy(config, "save_strategy", "steps") != "steps":
        return
    every, last = config.number("save_steps"), config.number("max_steps")
    if last is None and subject.spec is not None:
        last = subject.spec.trainer.steps
    if every is not None and last is not None and last > 0 and every > last:
        yield _violation(("save_steps",), f"a checkpoint every {every:g} steps, and {last:g} steps in all: none before the end")


def _best_of_nothing(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or config.value("load_best_model_at_end") is not True:
        return
    key = "eval_strategy" if config.at("eval_strategy") is not None else "evaluation_strategy"
    save, judge = _strategy(config, "save_strategy", "steps"), _strategy(config, key, "no")
    if save is None or judge is None or save in ("best", judge):
        return
    message = f"the best checkpoint is wanted, with save_strategy {save} and eval_strategy {judge}: they must be the same"
    yield _violation(("load_best_model_at_end",), message, "set both to steps")


def _saved_between(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or config.value("load_best_model_at_end") is not True:
        return
    if {_strategy(config, "save_strategy", "steps"), _strategy(config, "eval_strategy", "no")} != {"steps"}:
        return
    every, judged = config.number("save_steps"), config.number("eval_steps")
    if isinstance(every, int) and isinstance(judged, int) and judged > 0 and every % judged:
        message = f"saved every {every} steps and judged every {judged}: the best checkpoint may be none that was judged"
        yield _violation(("save_steps",), message, f"a multiple of {judged}, such as {-(-every // judged) * judged}")


def _renamed(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is not None and subject.trainer.at("evaluation_strategy") is not None:
        yield _violation(("evaluation_strategy",), "evaluation_strategy is called eval_strategy", "write eval_strategy", on_key=True)


def _uneven_groups(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if no number of processes on one machine makes a batch of whole groups."""
    config = subject.trainer
    group = config.number("num_generations") if config is not None else None
    if config is None or not isinstance(group, int):
        return
    if group < GROUP_MIN:
        yield _violation(("num_generations",), f"GRPO compares answers to one prompt; {group} has nothing to compare", "8")
        return
    batch, held = config.number("per_device_train_batch_size"), config.number("gradient_accumulation_steps")
    steps = 1 if held is None and config.at("gradient_accumulation_steps") is None else held
    if config.at("generation_batch_size") is not None or config.at("steps_per_generation") is not None:
        return
    if isinstance(batch, int) and isinstance(steps, int) and batch > 0 and steps > 0 and batch * steps * PROCESSES_MAX % group:
        message = f"groups of {group} do not divide a batch of {batch} x {steps} for each GPU, on 1, 2, 4 or 8 of them"
        yield _violation(("num_generations",), message, f"a number that divides {batch * steps}")


def _no_bf16(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    without = [kind for kind in spec.hardware.gpus if not gpus.has_bf16(kind)] if spec is not None else []
    if config is not None and without and config.value("bf16") is True:
        yield _violation(("bf16",), f"{without[0]} has no bf16", "fp16: true, or a newer kind of GPU")


def _attention(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    wanted = config.text("attn_implementation") if config is not None else None
    if spec is None or wanted not in ("flash_attention_2", "flash_attention_3"):
        return
    for kind in spec.hardware.gpus:
        family = gpus.plain(gpus.family(kind))
        if family in gpus.WITHOUT_BF16 or (wanted == "flash_attention_3" and gpus.facts(kind) is not None and family not in _HOPPER):
            yield _violation(("attn_implementation",), f"{wanted} does not run on {kind}", "write sdpa")
            return


def _elsewhere(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    folder = config.text("output_dir") if config is not None else None
    if spec is None or folder is None or "$" in folder or "{" in folder or any("ln -s" in command for command in spec.setup):
        return
    saved, looked = posixpath.normpath(folder), posixpath.normpath(spec.checkpoints.folder)
    # The path of the working tree on the machine is not known here.
    is_same = saved == looked or (saved.startswith("/") and saved.endswith(f"/{looked}"))
    if not is_same and not {"cd", "&&", ";"} & set(words(spec.trainer.command)):
        message = f"the trainer saves in {folder[:100]}; checkpoints are looked for in {spec.checkpoints.folder[:100]}"
        yield _violation(("output_dir",), message)


def _other_names(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.checkpoints.pattern == NAMED or _is_boxed(spec.trainer.command) or any("ln -s" in line for line in spec.setup):
        return
    message = f"checkpoints are looked for as {spec.checkpoints.pattern[:100]}; the Trainer calls them {NAMED}"
    yield Violation(("checkpoints", "pattern"), message)


def _is_boxed(command: str) -> bool:
    """Return whether another program wraps the trainer, which may rename its checkpoints."""
    return "--" in words(command)


def _two_precisions(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.value("fp16") is True and config.value("bf16") is True:
        yield _violation(("fp16",), "fp16 and bf16 exclude each other", "keep bf16 on GPUs that have it")


def _one_kept(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.number("save_total_limit") == 1:
        yield _violation(("save_total_limit",), "the only checkpoint is deleted while the next one is still on its way to the bucket")


def _other_batch(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and config.value("auto_find_batch_size") is True:
        yield _violation(
            ("auto_find_batch_size",), "another batch size makes other steps: an attempt on another GPU counts them differently"
        )


def _crowded(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or config.value("vllm_mode") != "colocate" or config.value("vllm_enable_sleep_mode") is True:
        return
    share = config.number("vllm_gpu_memory_utilization")
    if share is not None and share > SHARED_GPU_MAX:
        message = f"vLLM takes {share:.0%} of a GPU that it shares with the trainer"
        yield _violation(("vllm_gpu_memory_utilization",), message, "0.3, or vllm_enable_sleep_mode: true")


def _resume_ignored(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.hardware.spot == "never":
        return
    split = words(spec.trainer.command)
    is_own = any(word.startswith("trl.scripts.") for word in split)
    is_own |= any(word.rpartition("/")[2] == "trl" and after in _TRL for word, after in pairwise(split))
    if is_own:
        yield Violation(("trainer", "command"), "trl's own scripts never resume: each attempt starts over, whatever it is told")


def _row(code: str, severity: Severity, title: str, why: str, fix: str, check: Callable[[Subject], Iterable[Violation]]) -> Rule:
    return Rule(code, severity, title, why, fix, FAMILY, check, "hf_trainer")


RULES = (
    _row(
        "TR421",
        Severity.WARNING,
        "nothing is saved",
        "A run that loses its machine starts from zero.",
        "save_strategy: steps",
        _nothing_saved,
    ),
    _row(
        "TR422",
        Severity.WARNING,
        "checkpoints without their optimizer",
        "A missing optimizer is skipped without a word: Adam's moments and the learning rate start anew.",
        "delete save_only_model",
        _model_only,
    ),
    _row(
        "TR423",
        Severity.WARNING,
        "no checkpoint before the end",
        "A run that loses its machine starts from zero.",
        "a tenth of the steps",
        _after_the_end,
    ),
    _row(
        "TR424",
        Severity.ERROR,
        "the best of checkpoints that are not judged",
        "The Trainer refuses it when it is made.",
        "the same strategy for both",
        _best_of_nothing,
    ),
    _row("TR425", Severity.ERROR, "two precisions", "The Trainer refuses it when it is made.", "keep one of them", _two_precisions),
    _row(
        "TR426",
        Severity.NOTE,
        "one checkpoint kept",
        "It is deleted as soon as the next one is made, which may not be whole yet in the bucket.",
        "save_total_limit: 2",
        _one_kept,
    ),
    _row(
        "TR427",
        Severity.NOTE,
        "a batch size that finds itself",
        "Steps, and with them the end, the schedule and the checkpoints, mean something else on another GPU.",
        "set per_device_train_batch_size and gradient_accumulation_steps",
        _other_batch,
    ),
    _row(
        "TR428",
        Severity.WARNING,
        "a server that leaves the trainer no memory",
        "vLLM takes its share at the start; the trainer's first backward pass is then out of memory.",
        "vllm_gpu_memory_utilization: 0.3",
        _crowded,
    ),
    _row(
        "TR430",
        Severity.ERROR,
        "groups that do not divide the batch",
        "TRL refuses it when the trainer is made.",
        "a number that divides the batch",
        _uneven_groups,
    ),
    _row(
        "TR431",
        Severity.WARNING,
        "a setting that was renamed",
        "The Trainer of today does not know it: it refuses it, or never evaluates.",
        "its new name",
        _renamed,
    ),
    _row("TR432", Severity.ERROR, "numbers that the GPU does not have", "The Trainer refuses it when it is made.", "fp16: true", _no_bf16),
    _row(
        "TR433",
        Severity.WARNING,
        "attention for other GPUs",
        "The kernels are built for newer GPUs, or for others: the trainer dies in its first step.",
        "attn_implementation: sdpa",
        _attention,
    ),
    _row(
        "TR434",
        Severity.WARNING,
        "checkpoints that nobody looks for",
        "The agent takes checkpoints.folder to the bucket; what is saved elsewhere is gone with the machine, and nothing is resumed.",
        "--output_dir {checkpoints} in the command, or the same folder in both",
        _elsewhere,
    ),
    _row(
        "TR436",
        Severity.WARNING,
        "checkpoints by another name",
        "No checkpoint is found, so that none is taken to the bucket and nothing is resumed.",
        'checkpoints: {pattern: "checkpoint-{step}"}',
        _other_names,
    ),
    _row(
        "TR435",
        Severity.ERROR,
        "the best of checkpoints between evaluations",
        "The Trainer refuses it when it is made: save_steps must be a multiple of eval_steps.",
        "a multiple of eval_steps",
        _saved_between,
    ),
    Rule(
        "TR429",
        Severity.WARNING,
        "a script that never resumes",
        "`trl sft`, `trl grpo` and the like call train() without a checkpoint; resume_from_checkpoint is read by nobody.",
        "a script of your own that calls trainer.train(resume_from_checkpoint=...)",
        FAMILY,
        _resume_ignored,
        "spec",
    ),
)
