"""What trainers' memory was found to be: numbers, with how many published peaks each stands on.

`SHARED` holds for all trainers. A trainer's `times` is how far it departs from that, the less the fewer peaks it has (what is within 3 %
is left out). Both are made by tests/benchmarks/memory_fit.py from tests/data/memory_peaks.json, which has the peaks with commits and
pages; the fit aims 3 % above the peaks, for too little is what kills a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

SHARED: dict[str, float] = {
    # Bytes of a logit at the peak, with all its copies and gradients.
    "wide": 16.8,
    "narrow": 8.8,
    "compiled": 4.95,
    "chunked": 6.65,
    # GiB beside what is counted, by what the peak counts: see Measure.
    "allocated": 0.27,
    "reserved": 0.95,
    "device": 1.6,
    # Times the loss's buffers, and tokens above which the cap on lengths is met by few, where batches are of many lengths.
    "fragments": 2.14,
    "natural": 8192,
    # Of what layers keep, where they are compiled.
    "compiled_share": 0.76,
}


@dataclass(frozen=True)
class Trainer:
    """`peaks`: published ones that its `times` stand on."""

    source: str
    peaks: int
    times: Mapping[str, float] = field(default_factory=dict)
    whole_at_load: bool = False
    """Each GPU has the whole model and its shard at once while it is loaded."""
    unties_head: bool = False
    """Embedding and head are two matrices, whatever the model says."""


UNKNOWN = Trainer("none", 0)
TRAINERS: dict[str, Trainer] = {
    "prime-rl": Trainer("prime-rl@559b4477 benchmarks/baselines", 27, {"wide": 1.07, "reserved": 1.11}),
    "torchtitan": Trainer("torchtitan@b5bcd76c benchmarks", 9, {"wide": 0.96, "compiled": 1.19, "reserved": 1.04, "compiled_share": 1.05}),
    "torchtune": Trainer(
        "torchtune@bd2a0fc7 README.md, docs/source/tutorials",
        8,
        {"wide": 0.95, "chunked": 0.82, "allocated": 0.96, "reserved": 1.05, "compiled_share": 0.93},
    ),
    "lit-gpt": Trainer(
        "litgpt@26857050 tutorials/resource-tables.md, config_hub/finetune",
        31,
        {"chunked": 1.15, "allocated": 1.08},
        whole_at_load=True,
        unties_head=True,
    ),
    "fsdp_qlora": Trainer("fsdp_qlora@05ed9f2a benchmarks_03_2024.md", 10, {"wide": 1.33, "reserved": 0.91}),
    "ms-swift": Trainer("ms-swift@b40f31df Benchmark.md", 20, {"wide": 1.12, "reserved": 1.08, "fragments": 1.12, "natural": 0.34}),
    "Qwen finetune.py": Trainer("Qwen@2df8e8ac README.md", 36, {"wide": 0.78, "narrow": 0.96, "device": 1.39}),
    "peft": Trainer("peft@5d602fdb method_comparison/MetaMathQA", 1),
}
