"""What the settings of torchtitan say: its files in TOML up to version 0.2, and the same settings as arguments
since. Defaults are those of February 2026.
"""

import re

from prime_train.estimate.memory.training_setup import Method, Recompute, Sharding
from prime_train.spec.config_format import flags
from prime_train.spec.rule import Subject
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.view import Reader, Saving, Setting, TrainingSettings

LENGTH, MICRO_BATCH = 2048, 8
_MODELS = (
    (re.compile(r"llama_?3.*debug"), "Llama-3-debug-6M"),
    (re.compile(r"debug"), "debug-6M"),
    (re.compile(r"llama_?4.*17bx16e"), "Llama-4-Scout-17B-16E"),
    (re.compile(r"llama_?4.*17bx128e"), "Llama-4-Maverick-400B-A17B"),
    (re.compile(r"deepseek_?v3.*\b16b"), "DeepSeek-V2-Lite"),
    (re.compile(r"deepseek_?v3.*\b236b"), "DeepSeek-V2-236B-A21B"),
    (re.compile(r"deepseek_?v3.*\b671b"), "DeepSeek-V3-671B-A37B"),
    (re.compile(r"llama_?3.*\b405b"), "Llama-3.1-405B"),
    (re.compile(r"llama_?3[^0-9]*\b1b"), "Llama-3.2-1B"),
    (re.compile(r"llama_?3[^0-9]*\b3b"), "Llama-3.2-3B"),
)
"""The names of models whose names at torchtitan, with their flavor, do not say their shape. Its debug models have
a few million parameters each.
"""
_SPELT = re.compile(r"(llama|qwen|gpt_oss|deepseek_v)_?(\d*)[-_ ]*(.*)")


def settings(subject: Subject) -> TrainingSettings | None:
    """Return the settings of a subject; None if it has none of torchtitan."""
    if subject.trainer is None:
        return None
    read = Reader(subject.trainer)
    mode = read.text("activation_checkpoint.mode", default="selective")
    recomputed = {"none": Recompute.NONE, "full": Recompute.FULL}.get(mode.value, Recompute.SELECTIVE)
    every = read.integer("checkpoint.interval", default=500)
    return TrainingSettings(
        "torchtitan",
        model=_model(subject, read),
        method=_method(read),
        optimizer=read.text("optimizer.name", default="AdamW"),
        seq_len=read.integer("training.seq_len", default=LENGTH),
        micro_batch=read.integer("training.local_batch_size", "training.batch_size", default=MICRO_BATCH),
        accumulation=Setting(1),
        recompute=Setting(recomputed, mode.path, mode.place),
        sharding=Setting(_sharding(read)),
        saving=Saving(
            _is_saving(subject, read),
            Setting(every.value, every.path, every.place),
            kept=read.maybe("checkpoint.keep_latest_k"),
            folder=_folder(read),
        ),
        processes=_processes(subject),
        steps=read.maybe("training.steps"),
        resume=read.text("checkpoint.initial_load_path"),
    )


def model_name(named: str) -> str:
    """Return the model that a name and a flavor of torchtitan stand for, such as `qwen3-1.7B`."""
    plain = re.sub(r"[_ ]+(?=\d+b)", "-", named.lower())
    known = next((name for pattern, name in _MODELS if pattern.search(plain)), None)
    if known is not None:
        return known
    spelt = _SPELT.fullmatch(plain)
    if spelt is None:
        return named
    family = {"gpt_oss": "gpt-oss", "llama": "Llama", "qwen": "Qwen", "deepseek_v": "DeepSeek-V"}[spelt[1]]
    joined = "-" if family == "Llama" else ""
    number = f"{joined}{spelt[2]}" if spelt[2] else ""
    return f"{family}{number}-{spelt[3]}"


def _model(subject: Subject, read: Reader) -> Setting[str]:
    flavor = read.text("model.flavor")
    if flavor.value:
        named = f"{read.text('model.name', default='llama3').value}-{flavor.value}"
        return Setting(model_name(named), flavor.path, flavor.place)
    # The name of a config in Python, which contains the flavor: llama3_8b.
    chosen = dict(flags(subject.command)).get("config", "")
    path = ("command",) if chosen else ()
    return Setting(model_name(chosen) if chosen else read.text("model.hf_assets_path").value, path)


def _method(read: Reader) -> Setting[Method]:
    is_lora = read.has("lora") or "lora" in read.keys("peft") or "lora" in read.keys("model")
    return Setting(Method.LORA if is_lora else Method.FULL)


def _sharding(read: Reader) -> Sharding:
    shard = read.integer("parallelism.data_parallel_shard_degree", default=-1, least=-1).value
    return Sharding.NONE if shard in (0, 1) else Sharding.FSDP2


def _is_saving(subject: Subject, read: Reader) -> Setting[bool]:
    if subject.spec is not None and subject.spec.trainer.kind == "torchtitan" and subject.started is None:
        return Setting(True)  # each launch switches it on
    return read.switch("checkpoint.enable", "checkpoint.enable_checkpoint", default=False)


def _folder(read: Reader) -> Setting[str]:
    folder = read.text("checkpoint.folder", default="checkpoint")
    above = read.text("job.dump_folder", default="./outputs")
    return Setting(f"{above.value}/{folder.value}", above.path or folder.path, above.place or folder.place)


def _processes(subject: Subject) -> Setting[int | None]:
    if subject.spec is None:
        return Setting(None)
    started = processes(subject)
    if started.value is not None:
        return started
    workers = subject.spec.trainer.workers
    return Setting(workers, ("workers",)) if subject.spec.trainer.kind == "torchtitan" else Setting(None)
