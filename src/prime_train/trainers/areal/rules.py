"""Rules about AReaL's config (TR40x, TR41x), as of August 2026: above all recovery, which is off by default
without a warning.
"""

import math
import re
from collections.abc import Iterator

from prime_train.estimate import gpus
from prime_train.spec.config_format import words
from prime_train.spec.rule import Document, Rules, Subject, Violation
from prime_train.spec.tree import Mapping

TOPIC = "AReaL"

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


RULES = Rules(TOPIC, requires="areal")


def _violation(
    path: tuple[str | int, ...], message: str, fix: str = "", *, on_key: bool = False
) -> Violation:
    return Violation(path, message, fix, on_key=on_key, document="trainer")


def _mode(config: Document) -> str | None:
    """Return "on" or "off"; None if the mode is neither or a reference. YAML parses a bare on or off as true
    or false.
    """
    value = config.value("recover", "mode")
    if value is True or value in _ON:
        return "on"
    return "off" if value is False or value in _OFF else None


@RULES.error(
    "TR401",
    "an unknown recovery mode",
    why="AReaL rejects the setting when it starts.",
    fix="write on, auto, off or disabled",
)
def bad_mode(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    value = config.text("recover", "mode") if config is not None else None
    if value is not None and value not in _ON | _OFF and _REFERENCE not in value:
        gone = " (fault and resume were removed)" if value in ("fault", "resume") else ""
        yield _violation(("recover", "mode"), f"{value!r} is not a recovery mode{gone}", "write auto")


@RULES.warning(
    "TR402",
    "recovery is off",
    why="AReaL's examples leave it off. A run that loses its machine then silently starts from step 0.",
    fix="write recover: {mode: auto, freq_steps: ...}",
)
def no_recovery(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    unsaid = config is not None and config.at("recover", "mode") is None and not subject.is_by_flags
    if config is not None and (_mode(config) == "off" or unsaid):
        yield _violation(
            ("recover", "mode"),
            "recovery is off: a restarted run begins at step 0",
            "write recover: {mode: auto}",
        )


@RULES.warning(
    "TR403",
    "recovery without checkpoints",
    why="AReaL saves a recovery checkpoint when one of three intervals has passed, but none of them is set.",
    fix="add freq_steps or freq_secs",
)
def never_saved(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _mode(config) != "on" or not isinstance(config.at("recover"), Mapping):
        return
    # What a command does not change, the file that it names may say.
    said = [config.at("recover", name) is not None or not subject.is_by_flags for name in _FREQUENCIES]
    if all(config.value("recover", name) is None for name in _FREQUENCIES) and all(said):
        yield _violation(
            ("recover",),
            "recovery is on, but none of freq_epochs, freq_steps and freq_secs is set, so no checkpoint is "
            "ever saved",
            on_key=True,
        )
    every, steps = (
        config.number("recover", "freq_steps"),
        subject.spec.trainer.steps if subject.spec is not None else None,
    )
    others = (config.value("recover", name) for name in ("freq_epochs", "freq_secs"))
    if (
        every is not None
        and steps is not None
        and every > steps
        and all(value is None for value in others)
        and all(said)
    ):
        yield _violation(
            ("recover", "freq_steps"),
            f"a checkpoint every {every:g} steps in a run of {steps} steps: nothing is saved before the end",
        )


@RULES.note(
    "TR404",
    "a checkpoint only once per epoch",
    why="A preemption loses up to a full epoch of training.",
    fix="add freq_secs: 1800",
)
def epochs_only(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or _mode(config) != "on" or config.number("recover", "freq_epochs") is None:
        return
    if (
        config.value("recover", "freq_steps") is None
        and config.value("recover", "freq_secs") is None
        and not subject.is_by_flags
    ):
        yield _violation(
            ("recover", "freq_epochs"),
            "recovery checkpoints are saved only once per epoch, which may take hours",
        )


@RULES.warning(
    "TR405",
    "checkpoints outside the working tree",
    why="The agent uploads only checkpoints.folder, which is inside the working tree. Everything else is "
    "lost with the machine.",
    fix="write cluster.fileroot={checkpoints} in the command",
)
def lost_with_the_machine(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    root = config.text("cluster", "fileroot") if config is not None else None
    if root is not None and spec is not None and root.startswith(("/tmp/", "/dev/shm")):
        yield _violation(
            ("cluster", "fileroot"),
            f"{root} is outside the working tree: its checkpoints are never uploaded to the bucket",
        )


@RULES.warning(
    "TR414",
    "a relative fileroot",
    why="Workers that start in another directory do not find the checkpoints, so a recovery silently begins "
    "at step 0.",
    fix='write cluster.fileroot="$PWD/root" in the command, or another absolute path',
)
def relative(subject: Subject) -> Iterator[Violation]:
    root = subject.trainer.text("cluster", "fileroot") if subject.trainer is not None else None
    if root and not root.startswith("/") and "$" not in root and "{" not in root:
        yield _violation(
            ("cluster", "fileroot"),
            f"{root} is a relative path, which each AReaL process resolves against its own working directory",
        )


@RULES.warning(
    "TR406",
    "a learning-rate schedule that recovery does not restore",
    why="With FSDP the weights and the optimizer are restored, but the learning-rate schedule starts again, "
    "including its warm-up.",
    fix="write lr_scheduler_type: constant",
)
def schedule(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if (
        config is None
        or _mode(config) != "on"
        or not (config.text("actor", "backend") or "").startswith("fsdp")
    ):
        return
    kind = config.text("actor", "optimizer", "lr_scheduler_type")
    if kind is not None and kind != "constant" and _REFERENCE not in kind:
        yield _violation(
            ("actor", "optimizer", "lr_scheduler_type"),
            f"the {kind} learning-rate schedule restarts from the beginning after a recovery",
        )


@RULES.error(
    "TR407",
    "an API key in the config",
    why="AReaL copies the key into the run's saved config and uploads it to W&B with all other settings.",
    fix="delete the key, write secrets: [WANDB_API_KEY] in the run's spec, and replace the key, which is now "
    "exposed",
)
def key_in_the_open(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    key = config.text("stats_logger", "wandb", "api_key") if config is not None else None
    if key and _REFERENCE not in key:
        message = "AReaL writes this key into the run's saved config and uploads that config to W&B"
        yield Violation(("stats_logger", "wandb", "api_key"), message, document="trainer", is_secret=True)


@RULES.error(
    "TR408", "an unknown W&B mode", why="AReaL rejects the setting when it starts.", fix="write online"
)
def tracker_mode(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    mode = config.text("stats_logger", "wandb", "mode") if config is not None else None
    if mode is not None and mode not in _WANDB_MODES and _REFERENCE not in mode:
        yield _violation(
            ("stats_logger", "wandb", "mode"), f"{mode!r} is not one of {', '.join(sorted(_WANDB_MODES))}"
        )


@RULES.error(
    "TR409", "a setting that was removed", why="AReaL rejects the setting when it starts.", fix="delete it"
)
def removed(subject: Subject) -> Iterator[Violation]:
    actor = subject.trainer.at("actor") if subject.trainer is not None else None
    for entry in actor.entries if isinstance(actor, Mapping) else ():
        if entry.key in _REMOVED and getattr(entry.value, "value", 0) is not None:
            yield _violation(
                ("actor", entry.key), f"{entry.key} was removed", "see actor.rejection_sampling", on_key=True
            )


@RULES.error(
    "TR410",
    "a layout without its engine",
    why="AReaL rejects the setting when it starts.",
    fix="ENGINE:LAYOUT",
)
def bare_layout(subject: Subject) -> Iterator[Violation]:
    for part in ("actor", "rollout", "critic", "ref"):
        layout = subject.trainer.text(part, "backend") if subject.trainer is not None else None
        if layout is not None and _BARE_LAYOUT.fullmatch(layout):
            engine = "sglang" if part == "rollout" else "fsdp"
            yield _violation(
                (part, "backend"),
                f"{layout!r} does not name the engine that the layout is for",
                f"write {engine}:{layout}",
            )


@RULES.warning(
    "TR411",
    "an attention kernel that the GPU does not support",
    why="AReaL configures SGLang with kernels for Hopper GPUs. On other GPUs the server crashes at start-up.",
    fix="+sglang.attention_backend=flashinfer",
)
def attention_rule(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or not (config.text("rollout", "backend") or "").startswith("sglang"):
        return
    backend = config.text("sglang", "attention_backend")
    families = {gpus.plain(gpus.family(kind)) for kind in spec.hardware.gpus}
    others = sorted(families - _HOPPER)
    if others and backend in (None, "fa3"):
        backend_text = "fa3" if backend else "fa3, its default,"
        yield _violation(
            ("sglang", "attention_backend"),
            f"{backend_text} needs Hopper GPUs, but hardware.gpus allows {others[0]}",
            "write flashinfer or triton",
        )


@RULES.warning(
    "TR418",
    "an attention kernel of the trainer that the GPU does not support",
    why="The kernels are built for Hopper GPUs: the trainer crashes when it loads the model.",
    fix="write actor.attn_impl: flash_attention_2",
)
def training_attention(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or config.text("actor", "attn_impl") != "flash_attention_3":
        return
    others = sorted({gpus.plain(gpus.family(kind)) for kind in spec.hardware.gpus} - _HOPPER)
    if others:
        yield _violation(
            ("actor", "attn_impl"),
            f"flash_attention_3 needs Hopper GPUs, but hardware.gpus allows {others[0]}",
            "write flash_attention_2",
        )


@RULES.error(
    "TR415",
    "a value that AReaL does not know",
    why="AReaL rejects the setting when it starts.",
    fix="write one of the listed values",
)
def refused(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    dtype, attention = (
        config.text("actor", key) if config is not None else None for key in ("dtype", "attn_impl")
    )
    if dtype is not None and dtype not in _PRECISIONS and _REFERENCE not in dtype:
        yield _violation(
            ("actor", "dtype"), f"{dtype!r} is not one of bfloat16, float16, float32", "write bfloat16"
        )
    if attention is not None and attention not in _ATTENTION and not {"/", "$"} & set(attention):
        yield _violation(
            ("actor", "attn_impl"),
            f"{attention!r} is not one of {', '.join(sorted(_ATTENTION))}",
            "write flash_attention_2",
        )


@RULES.error(
    "TR417",
    "a memory fraction that is out of range",
    why="The server rejects the value when it starts.",
    fix="write a value between 0 and 1",
)
def no_share(subject: Subject) -> Iterator[Violation]:
    for path in _SHARES:
        share = subject.trainer.number(*path) if subject.trainer is not None else None
        if share is not None and not 0 < share <= 1:
            yield _violation(
                path,
                f"{share:g} is not a fraction of a GPU's memory",
                "write a fraction between 0 and 1, such as 0.8",
            )


@RULES.error(
    "TR416",
    "more GPUs than are rented",
    why="AReaL's scheduler fails with: Requested N GPUs but only M available.",
    fix="rent as many GPUs as actor.backend and rollout.backend need together",
)
def more_than_rented(subject: Subject) -> Iterator[Violation]:
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or not spec.hardware.gpus:
        return
    wanted = [_gpus_of(config.text(part, "backend") or "") for part in ("actor", "rollout")]
    apart = (
        config.text("rollout", "scheduling_strategy", "type") != "colocation"
        and config.value("enable_offload") is not True
    )
    total = sum(wanted) if apart else max(wanted)
    if all(wanted) and total > spec.hardware.count:
        message = (
            f"actor and rollout need {wanted[0]} and {wanted[1]} GPUs, but hardware.count "
            "rents "
            f"{spec.hardware.count}"
        )
        yield Violation(
            ("hardware", "count"),
            message,
            f"set hardware.count to {total}, or use a smaller actor.backend and rollout.backend",
        )


def _gpus_of(layout: str) -> int:
    """Return the GPUs of a layout, or 0 if it does not state them plainly."""
    found = _LAYOUT.fullmatch(layout)
    return math.prod(int(size) for size in re.findall(r"\d+", found[1])) if found else 0


@RULES.warning(
    "TR412",
    "a launcher that restarts finished runs",
    why="The legacy launchers cannot tell a finished run from a failed one. They restart it and report a "
    "failure at the end.",
    fix="recover: {retries: 0}",
)
def repeated(subject: Subject) -> Iterator[Violation]:
    spec, config = subject.spec, subject.trainer
    if spec is None or config is None or not any(_LEGACY.match(word) for word in words(spec.trainer.command)):
        return
    retries = config.number("recover", "retries")
    if retries != 0 and not (retries is None and subject.is_by_flags):
        yield _violation(
            ("recover", "retries"),
            "this launcher restarts even a finished run, up to recover.retries times (3 by default)",
            "write 0",
        )


@RULES.error("TR413", "no epochs", why="AReaL rejects the setting when it starts.", fix="1 or more")
def no_epochs(subject: Subject) -> Iterator[Violation]:
    epochs = subject.trainer.number("total_train_epochs") if subject.trainer is not None else None
    if epochs is not None and epochs <= 0:
        yield _violation(("total_train_epochs",), f"must be more than 0, got {epochs:g}")
