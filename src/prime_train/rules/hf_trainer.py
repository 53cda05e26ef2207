"""The Trainer of transformers, and TRL (TR42x, TR43x): what its settings do to a run that must go on after a preemption."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from prime_train.core.finding import Severity
from prime_train.core.spec import Spot
from prime_train.rules.rule import Document, Flaw, Rule, Subject
from prime_train.rules.words import words

FAMILY = "transformers and TRL"
SHARED_GPU_MAX = 0.8
"""Of a GPU's memory, for a server that shares it with the trainer."""
_STRATEGIES = frozenset(("no", "steps", "epoch", "best"))
_TRL = frozenset(("sft", "dpo", "grpo", "kto", "reward", "rloo"))


def _flaw(path: tuple[str, ...], message: str, fix: str = "", *, on_key: bool = False) -> Flaw:
    return Flaw(path, message, fix, on_key=on_key, document="trainer")


def _strategy(config: Document, key: str, default: str) -> str | None:
    """YAML reads a bare no as false. None where it is not said plainly."""
    node = config.at(key)
    value = config.value(key) if node is not None else default
    if value is False:
        return "no"
    return value if isinstance(value, str) and value in _STRATEGIES else None


def _nothing_saved(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is not None and _strategy(config, "save_strategy", "steps") == "no":
        yield _flaw(("save_strategy",), "nothing is saved before the end")


def _model_only(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is not None and config.value("save_only_model") is True:
        yield _flaw(("save_only_model",), "checkpoints hold no optimizer: a run can not go on from one")


def _after_the_end(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is None or _strategy(config, "save_strategy", "steps") != "steps":
        return
    every, last = config.number("save_steps"), config.number("max_steps")
    if every is not None and last is not None and last > 0 and every > last:
        yield _flaw(("save_steps",), f"a checkpoint every {every:g} steps, and {last:g} steps in all: none before the end")


def _best_of_nothing(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is None or config.value("load_best_model_at_end") is not True:
        return
    key = "eval_strategy" if config.at("eval_strategy") is not None else "evaluation_strategy"
    save, judge = _strategy(config, "save_strategy", "steps"), _strategy(config, key, "no")
    if save is None or judge is None or save in ("best", judge):
        return
    message = f"the best checkpoint is wanted, with save_strategy {save} and eval_strategy {judge}: they must be the same"
    yield _flaw(("load_best_model_at_end",), message, "set both to steps")


def _two_precisions(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is not None and config.value("fp16") is True and config.value("bf16") is True:
        yield _flaw(("fp16",), "fp16 and bf16 exclude each other", "keep bf16 on GPUs that have it")


def _one_kept(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is not None and config.number("save_total_limit") == 1:
        yield _flaw(("save_total_limit",), "the only checkpoint is deleted while the next one is still on its way to the bucket")


def _other_batch(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is not None and config.value("auto_find_batch_size") is True:
        yield _flaw(("auto_find_batch_size",), "another batch size makes other steps: an attempt on another GPU counts them differently")


def _crowded(subject: Subject) -> Iterator[Flaw]:
    config = subject.trainer
    if config is None or config.value("vllm_mode") != "colocate" or config.value("vllm_enable_sleep_mode") is True:
        return
    share = config.number("vllm_gpu_memory_utilization")
    if share is not None and share > SHARED_GPU_MAX:
        message = f"vLLM takes {share:.0%} of a GPU that it shares with the trainer"
        yield _flaw(("vllm_gpu_memory_utilization",), message, "0.3, or vllm_enable_sleep_mode: true")


def _resume_ignored(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.hardware.spot is Spot.NEVER:
        return
    split = words(spec.trainer.command)
    is_own = any(word.startswith("trl.scripts.") for word in split)
    is_own |= any(word.rpartition("/")[2] == "trl" and after in _TRL for word, after in pairwise(split))
    if is_own:
        yield Flaw(("trainer", "command"), "trl's own scripts never resume: each attempt starts over, whatever it is told")


def _row(code: str, severity: Severity, title: str, why: str, fix: str, check: Callable[[Subject], Iterable[Flaw]]) -> Rule:
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
