"""Parses a published row. What it does not give is assumed to be as in most such runs, or as what needs more
memory.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_train.estimate.memory.phases import GIB, Logits, Recompute, Sharding
from prime_train.estimate.memory.software_factors import LogitsPrecision, MadeWith, Measure

PEAKS = Path(__file__).parents[2] / "data" / "memory_peaks.json"
WORDS = {
    "paged": 0.0,
    "fp8": 1.0,
    "float8": 1.0,
    "int8": 1.0,
    "dq": 0.516,
    "gptq": 0.53,
    "awq": 0.53,
    "mxfp4": 0.53,
    "4": 0.5625,
    "8": 1.0,
    "32": 4.0,
    "16": 2.0,
}
"""Bytes per number, by a part of the name of its kind."""
TRAINERS = {
    "prime-rl": "prime-rl",
    "torchtitan": "torchtitan",
    "torchtune": "torchtune",
    "lit-gpt": "lit-gpt",
    "litgpt": "lit-gpt",
    "fsdp_qlora": "fsdp_qlora",
    "swift": "ms-swift",
    "qwen finetune": "Qwen finetune.py",
    "peft": "peft",
}
FILLED = ("lit-gpt", "Qwen finetune.py")
"""Trainers whose samples reach the given length although they do not pack: the longest sample comes first, or
is generated.
"""
SHORT = ("alpaca", "metamath", "bucketed", "short samples")
"""Data sets in which hardly a sample has more than `SHORT_TOKENS` tokens."""
SHORT_TOKENS, UNSAID_TOKENS = 512, 2048
SHARDINGS = {
    r"zero[- ]?3|stage[- ]?3": Sharding.ZERO3,
    r"zero[- ]?2|stage[- ]?2": Sharding.ZERO2,
    r"zero[- ]?1|stage[- ]?1": Sharding.ZERO1,
    r"no-shard|ddp": Sharding.NONE,
    r"fsdp2": Sharding.FSDP2,
}
ADAPTERS = re.compile(r"lora|dora|ia3|vera|oft|loha|lokr|adapter|prompt|prefix|peft")
ADAPTED_MAX = 0.2
"""The largest share of all parameters that an adapter has."""
NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Row:
    """A published row. `peak`: bytes."""

    stated: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.stated["id"])

    @property
    def source(self) -> str:
        return str(self.stated["source"]).split("@")[0].split(" ")[0].split("/pull")[0]

    @property
    def peak(self) -> float:
        return float(self.stated["peak_gib"]) * GIB

    @property
    def gpus(self) -> int:
        return max(1, round(self.number("n_gpus", 1)))

    @property
    def is_training(self) -> bool:
        return bool(self.stated["kind"] == "memory-train")

    @property
    def is_full(self) -> bool:
        """Return whether all weights are trained, and not an adapter of any kind."""
        if "full" in self.text("method"):
            return True
        few = 0 < self.number("trainable_params", 0) < ADAPTED_MAX * self.number("params", 0)
        return not few and not self.text("lora_rank") and not ADAPTERS.search(self.text("method"))

    def text(self, key: str) -> str:
        return str(self.stated.get(key) or "").lower()

    def number(self, key: str, otherwise: float) -> float:
        """Return the first number given under the key."""
        found = NUMBER.search(self.text(key).replace(",", ""))
        return float(found[0]) if found else otherwise

    def complete(self, key: str, otherwise: int) -> int:
        return max(1, round(self.number(key, otherwise)))

    def says(self, *words: str) -> bool:
        """Return whether one of these words is in the row's name or notes."""
        return any(word in f"{self.text('id')} {self.text('notes')}" for word in words)


def made_with(row: Row) -> MadeWith:
    framework = row.text("framework")
    trainer = next((known for word, known in TRAINERS.items() if word in framework), framework or "unknown")
    ragged = (
        row.stated.get("packed") is False
        and trainer not in FILLED
        and not row.says("exact length", "forced first")
    )
    return MadeWith(trainer, measure_of(row.text("peak_kind")), loss_of(row, trainer), ragged)


def measure_of(text: str) -> Measure:
    if "reserved" in text or not text:
        return Measure.RESERVED
    return Measure.ALLOCATED if "alloc" in text or "active" in text else Measure.DEVICE


def loss_of(row: Row, trainer: str) -> LogitsPrecision:
    """Return the precision of the loss. Qwen's first models have code of their own that does not widen
    logits, and DeepSpeed has no autocast that would.
    """
    if "compiled" in row.text("cross_entropy"):
        return LogitsPrecision.COMPILED
    if (
        trainer == "torchtitan"
        and row.stated.get("compile")
        and re.search(r"20(2[5-9]|3\d)", row.text("version"))
    ):
        return LogitsPrecision.COMPILED
    deepspeed = (
        "zero" in row.text("sharding") or "deepspeed" in row.text("optimizer") or row.says("deepspeed")
    )
    return (
        LogitsPrecision.NARROW
        if deepspeed and row.text("model").startswith("qwen/qwen-")
        else LogitsPrecision.WIDE
    )


def tokens_of(row: Row, made: MadeWith) -> int:
    """Return the tokens of one sequence on one of the GPUs that share it."""
    if not made.ragged or not row.says(*SHORT):
        return max(1, -(-row.complete("seq_len", UNSAID_TOKENS) // degree(row, "cp")))
    return min(row.complete("seq_len", SHORT_TOKENS), SHORT_TOKENS)


def degree(row: Row, kind: str) -> int:
    """Return the degree of parallelism of a kind: cp, tp or pp. It is in the row's name or notes; if only the
    kind is given, it is a node's eight GPUs.
    """
    found = re.search(
        rf"(?:^|[-_ +x]){kind}[ =]?(\d+)", f"{row.text('id')} {row.text('sharding')} {row.text('notes')}"
    )
    if found:
        return max(1, int(found[1]))
    return 8 if kind in row.text("sharding") and row.gpus >= 8 else 1


def bytes_of(kind: str, otherwise: float) -> float:
    return next((size for word, size in WORDS.items() if word in kind), otherwise)


def weight_of(row: Row) -> float:
    """Return the bytes of a weight."""
    return bytes_of(row.text("weights_dtype"), 2.0)


def state_of(row: Row) -> float:
    """Return the bytes of one of AdamW's two numbers."""
    return bytes_of(
        row.text("optimizer_state_dtype"), 1.0 if re.search(r"8[- ]?bit", row.text("optimizer")) else 4.0
    )


def recompute_of(text: str) -> Recompute:
    if text.startswith(("none", "false", "no ", "off")) or text in ("", "no"):
        return Recompute.NONE
    return Recompute.SELECTIVE if "selective" in text else Recompute.FULL


def logits_of(row: Row) -> Logits:
    text = row.text("cross_entropy")
    if re.search(r"(?<!un)(?<!non-)fused|liger|cut.cross", text) or (
        "unsloth" in row.text("framework") and not text
    ):
        return Logits.FUSED
    return Logits.CHUNKED if "chunk" in text and "no chunk" not in text else Logits.FULL


def sharding_of(row: Row, trainer: str) -> Sharding:
    text = row.text("sharding")
    found = next((kind for words, kind in SHARDINGS.items() if re.search(words, text)), None)
    if found is not None:
        return found
    if "fsdp" not in text and "shard" not in text:
        return Sharding.NONE
    return Sharding.FSDP2 if trainer in ("prime-rl", "torchtitan") else Sharding.FSDP1
