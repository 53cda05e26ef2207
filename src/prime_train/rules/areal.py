"""Rules about AReaL's config (TR40x, TR41x), as of August 2026: above all recovery, which is off by default without a warning."""

import math
import re
from collections.abc import Callable, Iterable, Iterator

from prime_train.core.config_tree import Mapping
from prime_train.core.finding import Severity
from prime_train.estimate import gpus
from prime_train.rules.rule import Document, Rule, Subject, Violation
from prime_train.rules.words import words

FAMILY = "AReaL"

_ON, _OFF = frozenset(("on", "auto")), frozenset(("off", "disabled"))
_FREQUENCIES = ("freq_epochs", "freq_steps", "freq_secs")
_WANDB_MODES = frozenset(("online", "offline", "disabled", "shared"))
_REMOVED = ("behave_imp_weight_cap", "behave_imp_weight_mode")
_BARE_LAYOUT = re.compile(r"([dtpce]\d+)+")
_LEGACY = re.compile(r"areal\.(infra\.)?launcher\.")
_PRECISIONS = frozenset(("float32", "bfloat16", "float16", "f32", "bf16", "f16"))
_ATTENTION = frozenset(("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"))
_SHARES = (("sglang", "mem_fraction_static"), ("vllm", "gpu_memory_utilization"))
_LAYOUT = re.compile(r"\w+:((?:[dtpc]\d{1,3})+)")
_HOPPER = frozenset(("H100", "H200", "GH200", "H800", "H20"))
_REFERENCE = "${"


def _violation(path: tuple[str | int, ...], message: str, fix: str = "", *, on_key: bool = False) -> Violation:
    return Violation(path, message, fix, on_key=on_key, document="trainer")


def _mode(config: Document) -> str | None:
    """Return "on" or "off"; None if the mode is neither or a reference. YAML parses a bare on or off as true or false."""
    value = config.value("recover", "mode")
    if value is True or value in _ON:
        return "on"
    return "off" if value is False or value in _OFF else None


def _bad_mode(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    value = config.text("recover", "mode") if config is not None else None
    if value is not None and value not in _ON | _OFF and _REFERENCE not in value:
        gone = " (fault and resume were removed)" if value in ("fault", "resume") else ""
        yield _violation(("recover", "mode"), f"{value!r} is no mode of recovery{gone}", "write auto")


def _no_recovery(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is not None and (_mode(config) == "off" or config.at("recover", "mode") is None):
        yield _violation(
            ("recover", "mode"), "recovery is off: a run that is started again starts from step 0", "write recover: {mode: auto}"
        )


def _never_saved(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _mode(config) != "on" or not isinstance(config.at("recover"), Mapping):
        return
    if all(config.value("recover", name) is None for name in _FREQUENCIES):
        yield _violation(
            ("recover",), "recovery is on, and no freq_epochs, freq_steps or freq_secs is set: nothing is ever saved", on_key=True
        )
    every, steps = config.number("recover", "freq_steps"), subject.spec.trainer.steps if subject.spec is not None else None
    others = (config.value("recover", name) for name in ("freq_epochs", "freq_secs"))
    if every is not None and steps is not None and every > steps and all(value is None for value in others):
        yield _violation(
            ("recover", "freq_steps"), f"saved every {every:g} steps, and {steps} steps in all: nothing is saved before the end"
        )


def _epochs_only(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _mode(config) != "on" or config.number("recover", "freq_epochs") is None:
        return
    if config.value("recover", "freq_steps") is None and config.value("recover", "freq_secs") is None:
        yield _violation(("recover", "freq_epochs"), "what recovery needs is saved once in an epoch only, which may take hours")


def _lost_with_the_machine(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    root = config.text("cluster", "fileroot") if config is not None else None
    if root is not None and spec is not None and root.startswith(("/tmp/", "/dev/shm")):
        yield _violation(("cluster", "fileroot"), f"{root} is no part of the working tree: nobody takes its checkpoints to the bucket")


def _relative(subject: Subject) -> Iterator[Violation]:
    root = subject.trainer.text("cluster", "fileroot") if subject.trainer is not None else None
    if root and not root.startswith("/") and "$" not in root and "{" not in root:
        yield _violation(("cluster", "fileroot"), f"{root} is looked for from wherever each of AReaL's processes is")


def _schedule(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _mode(config) != "on" or not (config.text("actor", "backend") or "").startswith("fsdp"):
        return
    kind = config.text("actor", "optimizer", "lr_scheduler_type")
    if kind is not None and kind != "constant" and _REFERENCE not in kind:
        yield _violation(
            ("actor", "optimizer", "lr_scheduler_type"), f"the {kind} schedule of the learning rate starts anew after a recovery"
        )


def _key_in_the_open(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    key = config.text("stats_logger", "wandb", "api_key") if config is not None else None
    if key and _REFERENCE not in key:
        message = "AReaL stores this key in the run's saved config and sends it to W&B with it"
        yield Violation(("stats_logger", "wandb", "api_key"), message, document="trainer", is_secret=True)


def _tracker_mode(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    mode = config.text("stats_logger", "wandb", "mode") if config is not None else None
    if mode is not None and mode not in _WANDB_MODES and _REFERENCE not in mode:
        yield _violation(("stats_logger", "wandb", "mode"), f"{mode!r} is none of {', '.join(sorted(_WANDB_MODES))}")


def _removed(subject: Subject) -> Iterator[Violation]:
    actor = subject.trainer.at("actor") if subject.trainer is not None else None
    for entry in actor.entries if isinstance(actor, Mapping) else ():
        if entry.key in _REMOVED and getattr(entry.value, "value", 0) is not None:
            yield _violation(("actor", entry.key), f"{entry.key} was removed", "see actor.rejection_sampling", on_key=True)


def _bare_layout(subject: Subject) -> Iterator[Violation]:
    for part in ("actor", "rollout", "critic", "ref"):
        layout = subject.trainer.text(part, "backend") if subject.trainer is not None else None
        if layout is not None and _BARE_LAYOUT.fullmatch(layout):
            engine = "sglang" if part == "rollout" else "fsdp"
            yield _violation((part, "backend"), f"{layout!r} does not say whose layout it is", f"write {engine}:{layout}")


def _attention(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or not (config.text("rollout", "backend") or "").startswith("sglang"):
        return
    backend = config.text("sglang", "attention_backend")
    families = {gpus.plain(gpus.family(kind)) for kind in spec.hardware.gpus}
    others = sorted(families - _HOPPER)
    if others and backend in (None, "fa3"):
        said = "fa3" if backend else "fa3, its default,"
        yield _violation(
            ("sglang", "attention_backend"), f"{said} is for Hopper GPUs; {others[0]} is asked for", "write flashinfer or triton"
        )


def _training_attention(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or config.text("actor", "attn_impl") != "flash_attention_3":
        return
    others = sorted({gpus.plain(gpus.family(kind)) for kind in spec.hardware.gpus} - _HOPPER)
    if others:
        yield _violation(
            ("actor", "attn_impl"), f"flash_attention_3 is for Hopper GPUs; {others[0]} is asked for", "write flash_attention_2"
        )


def _refused(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    dtype, attention = (config.text("actor", key) if config is not None else None for key in ("dtype", "attn_impl"))
    if dtype is not None and dtype not in _PRECISIONS and _REFERENCE not in dtype:
        yield _violation(("actor", "dtype"), f"{dtype!r} is none of bfloat16, float16, float32", "write bfloat16")
    if attention is not None and attention not in _ATTENTION and not {"/", "$"} & set(attention):
        yield _violation(("actor", "attn_impl"), f"{attention!r} is none of {', '.join(sorted(_ATTENTION))}", "write flash_attention_2")


def _no_share(subject: Subject) -> Iterator[Violation]:
    for path in _SHARES:
        share = subject.trainer.number(*path) if subject.trainer is not None else None
        if share is not None and not 0 < share <= 1:
            yield _violation(path, f"{share:g} is no share of a GPU's memory", "between 0 and 1, such as 0.8")


def _more_than_rented(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or not spec.hardware.gpus:
        return
    wanted = [_gpus_of(config.text(part, "backend") or "") for part in ("actor", "rollout")]
    apart = config.text("rollout", "scheduling_strategy", "type") != "colocation" and config.value("enable_offload") is not True
    total = sum(wanted) if apart else max(wanted)
    if all(wanted) and total > spec.hardware.count:
        message = f"actor and rollout want {wanted[0]} and {wanted[1]} GPUs; {spec.hardware.count} are rented"
        yield Violation(("hardware", "count"), message, f"rent {total}, or a smaller actor.backend and rollout.backend")


def _gpus_of(layout: str) -> int:
    """Return the GPUs of a layout, or 0 if it does not state them plainly."""
    found = _LAYOUT.fullmatch(layout)
    return math.prod(int(size) for size in re.findall(r"\d+", found[1])) if found else 0


def _repeated(subject: Subject) -> Iterator[Violation]:
    spec, config = subject.spec, subject.trainer
    if spec is None or config is None or not any(_LEGACY.match(word) for word in words(spec.trainer.command)):
        return
    if config.number("recover", "retries") != 0:
        yield _violation(
            ("recover", "retries"), "this launcher starts a finished run again, as often as recover.retries says (3)", "write 0"
        )


def _no_epochs(subject: Subject) -> Iterator[Violation]:
    epochs = subject.trainer.number("total_train_epochs") if subject.trainer is not None else None
    if epochs is not None and epochs <= 0:
        yield _violation(("total_train_epochs",), f"must be more than 0, got {epochs:g}")


def _row(code: str, severity: Severity, title: str, why: str, fix: str, check: Callable[[Subject], Iterable[Violation]]) -> Rule:
    return Rule(code, severity, title, why, fix, FAMILY, check, "areal")


RULES = (
    _row(
        "TR401",
        Severity.ERROR,
        "no mode of recovery",
        "AReaL refuses it when it starts.",
        "on, auto, off or disabled",
        _bad_mode,
    ),
    _row(
        "TR402",
        Severity.WARNING,
        "recovery is off",
        "AReaL's examples leave it off. A run that loses its machine starts from step 0, without a word.",
        "recover: {mode: auto, freq_steps: ...}",
        _no_recovery,
    ),
    _row(
        "TR403",
        Severity.WARNING,
        "recovery without anything to recover from",
        "What recovery needs is saved when one of three intervals has passed; none is set.",
        "add freq_steps or freq_secs",
        _never_saved,
    ),
    _row(
        "TR404",
        Severity.NOTE,
        "saved once an epoch",
        "A preemption costs up to a whole epoch.",
        "add freq_secs: 1800",
        _epochs_only,
    ),
    _row(
        "TR405",
        Severity.WARNING,
        "checkpoints outside of the working tree",
        "The agent takes checkpoints.folder to the bucket, which is inside the working tree; the rest is gone with the machine.",
        "cluster.fileroot={checkpoints} in the command",
        _lost_with_the_machine,
    ),
    _row(
        "TR406",
        Severity.WARNING,
        "a schedule that recovery forgets",
        "With FSDP the weights and the optimizer are restored, the schedule of the learning rate is not: it starts anew, warm-up and all.",
        "lr_scheduler_type: constant",
        _schedule,
    ),
    _row(
        "TR407",
        Severity.ERROR,
        "a key in the config",
        "It is copied into the run's saved config and sent to W&B with all settings.",
        "delete it, and write secrets: [WANDB_API_KEY] in the run's spec; the key must be replaced",
        _key_in_the_open,
    ),
    _row("TR408", Severity.ERROR, "no mode of W&B", "AReaL refuses it when it starts.", "write online", _tracker_mode),
    _row("TR409", Severity.ERROR, "a setting that was removed", "AReaL refuses it when it starts.", "delete it", _removed),
    _row("TR410", Severity.ERROR, "a layout without its engine", "AReaL refuses it when it starts.", "ENGINE:LAYOUT", _bare_layout),
    _row(
        "TR411",
        Severity.WARNING,
        "attention for other GPUs",
        "SGLang as AReaL sets it up uses kernels for Hopper GPUs. On others the server dies at its start.",
        "+sglang.attention_backend=flashinfer",
        _attention,
    ),
    _row(
        "TR412",
        Severity.WARNING,
        "a launcher that repeats what is finished",
        "The legacy launchers cannot tell a finished run from a failed one and start it again; in the end they report a failure.",
        "recover: {retries: 0}",
        _repeated,
    ),
    _row(
        "TR414",
        Severity.WARNING,
        "a root that is not absolute",
        "Workers that start elsewhere do not find it, and neither does a recovery: it begins at step 0 without a word.",
        'cluster.fileroot="$PWD/root" in the command, or another absolute path',
        _relative,
    ),
    _row("TR415", Severity.ERROR, "a value that AReaL does not know", "AReaL refuses it when it starts.", "one that it knows", _refused),
    _row(
        "TR416",
        Severity.ERROR,
        "more GPUs than are rented",
        "AReaL's scheduler refuses it: Requested N GPUs but only M available.",
        "as many GPUs as actor.backend and rollout.backend want together",
        _more_than_rented,
    ),
    _row("TR417", Severity.ERROR, "a share of memory that is none", "The server refuses it when it starts.", "between 0 and 1", _no_share),
    _row(
        "TR418",
        Severity.WARNING,
        "attention of a trainer for other GPUs",
        "The kernels are built for Hopper: the trainer dies when it loads the model.",
        "actor.attn_impl: flash_attention_2",
        _training_attention,
    ),
    _row("TR413", Severity.ERROR, "no epochs", "AReaL refuses it when it starts.", "1 or more", _no_epochs),
)
