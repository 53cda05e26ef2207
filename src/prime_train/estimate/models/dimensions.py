"""The dimensions of models that people train, from their published configurations.

Heads, layers and widths are named as in `config.json`. For a mixture of experts, `ffn` is the width that one
token passes (experts per token times the width of one, including shared experts), so that the same formulas
hold for its activations.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A model's dimensions. `params` counts all parameters, `active` those used for one token. `guessed`
    means that the shape was derived from the model's size.
    """

    name: str
    params: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool = False
    """The embedding is also the head."""
    active: int = 0
    experts: int = 1
    """Experts per layer, including shared ones."""
    experts_used: int = 1
    """Experts that one token passes, including shared ones."""
    guessed: bool = False
    gated: bool = True
    """The MLP is gated and the norms are RMS norms in 32 bit, as in all models since Llama."""
    norms: int = 2
    """Norms per layer; Gemma also normalises the outputs of attention and MLP."""
    capped: bool = False
    """The logits are capped by a tanh, as in Gemma 2."""

    def __post_init__(self) -> None:
        if not self.active:
            object.__setattr__(self, "active", self.params)

    @property
    def is_moe(self) -> bool:
        return self.active < self.params

    @property
    def embedding_params(self) -> int:
        """Return the parameters of embedding and head together."""
        return self.vocab * self.hidden * (1 if self.tied else 2)

    @property
    def attention_width(self) -> int:
        """Return the total width of the queries of all heads."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Return the total width of the keys of all heads, which is also that of the values."""
        return self.kv_heads * self.head_dim

    @property
    def layer_params(self) -> float:
        """Return all parameters of one layer, including every expert."""
        return max(0, self.params - self.embedding_params) / self.layers


_QWEN25 = (
    Model("Qwen2.5-0.5B", 494_032_768, 24, 896, 14, 2, 64, 4864, 151_936, tied=True),
    Model("Qwen2.5-1.5B", 1_543_714_304, 28, 1536, 12, 2, 128, 8960, 151_936, tied=True),
    Model("Qwen2.5-3B", 3_085_938_688, 36, 2048, 16, 2, 128, 11_008, 151_936, tied=True),
    Model("Qwen2.5-7B", 7_615_616_512, 28, 3584, 28, 4, 128, 18_944, 152_064),
    Model("Qwen2.5-14B", 14_770_033_664, 48, 5120, 40, 8, 128, 13_824, 152_064),
    Model("Qwen2.5-32B", 32_763_876_352, 64, 5120, 40, 8, 128, 27_648, 152_064),
    Model("Qwen2.5-72B", 72_706_203_648, 80, 8192, 64, 8, 128, 29_568, 152_064),
)
_QWEN3 = (
    Model("Qwen3-0.6B", 596_049_920, 28, 1024, 16, 8, 128, 3072, 151_936, tied=True),
    Model("Qwen3-1.7B", 1_720_574_976, 28, 2048, 16, 8, 128, 6144, 151_936, tied=True),
    Model("Qwen3-4B", 4_022_468_096, 36, 2560, 32, 8, 128, 9728, 151_936, tied=True),
    Model("Qwen3-8B", 8_190_735_360, 36, 4096, 32, 8, 128, 12_288, 151_936),
    Model("Qwen3-14B", 14_768_307_200, 40, 5120, 40, 8, 128, 17_408, 151_936),
    Model("Qwen3-32B", 32_762_123_264, 64, 5120, 64, 8, 128, 25_600, 151_936),
    Model(
        "Qwen3-30B-A3B",
        30_532_122_624,
        48,
        2048,
        32,
        4,
        128,
        6144,
        151_936,
        active=3_350_000_000,
        experts=128,
        experts_used=8,
    ),
    Model(
        "Qwen3-235B-A22B",
        235_093_634_560,
        94,
        4096,
        64,
        4,
        128,
        12_288,
        151_936,
        active=22_190_000_000,
        experts=128,
        experts_used=8,
    ),
)
_LLAMA = (
    Model("Llama-2-7B", 6_738_415_616, 32, 4096, 32, 32, 128, 11_008, 32_000),
    Model("Llama-2-13B", 13_015_864_320, 40, 5120, 40, 40, 128, 13_824, 32_000),
    Model("Llama-2-70B", 68_976_648_192, 80, 8192, 64, 8, 128, 28_672, 32_000),
    Model("Llama-3-8B", 8_030_261_248, 32, 4096, 32, 8, 128, 14_336, 128_256),
    Model("Llama-3-70B", 70_553_706_496, 80, 8192, 64, 8, 128, 28_672, 128_256),
    Model("Llama-3.1-405B", 405_853_388_800, 126, 16_384, 128, 8, 128, 53_248, 128_256),
    Model("Llama-3.2-1B", 1_235_814_400, 16, 2048, 32, 8, 64, 8192, 128_256, tied=True),
    Model("Llama-3.2-3B", 3_212_749_824, 28, 3072, 24, 8, 128, 8192, 128_256, tied=True),
    Model(
        "Llama-4-Scout-17B-16E",
        107_770_000_000,
        48,
        5120,
        40,
        8,
        128,
        16_384,
        202_048,
        active=17_170_000_000,
        experts=17,
        experts_used=2,
    ),
    Model("CodeLlama-34B", 33_743_970_304, 48, 8192, 64, 8, 128, 22_016, 32_000),
    Model("TinyLlama-1.1B", 1_100_048_384, 22, 2048, 32, 4, 64, 5632, 32_000),
)
_MISTRAL = (
    Model("Mistral-7B", 7_248_023_552, 32, 4096, 32, 8, 128, 14_336, 32_768),
    Model("Mistral-Nemo", 12_247_782_400, 40, 5120, 32, 8, 128, 14_336, 131_072),
    Model("Ministral-3-8B", 8_489_553_920, 34, 4096, 32, 8, 128, 14_336, 131_072),
    Model("Mistral-Small-24B", 23_572_403_200, 40, 5120, 32, 8, 128, 32_768, 131_072),
    Model(
        "Mixtral-8x7B",
        46_702_792_704,
        32,
        4096,
        32,
        8,
        128,
        28_672,
        32_000,
        active=12_880_000_000,
        experts=8,
        experts_used=2,
    ),
    Model(
        "Mixtral-8x22B",
        140_620_634_112,
        56,
        6144,
        48,
        8,
        128,
        32_768,
        32_000,
        active=39_150_000_000,
        experts=8,
        experts_used=2,
    ),
)
_GEMMA = (
    Model("Gemma-2-2B", 2_614_341_888, 26, 2304, 8, 4, 256, 9216, 256_000, tied=True, norms=4, capped=True),
    Model(
        "Gemma-2-9B", 9_241_705_984, 42, 3584, 16, 8, 256, 14_336, 256_000, tied=True, norms=4, capped=True
    ),
    Model(
        "Gemma-2-27B", 27_227_128_320, 46, 4608, 32, 16, 128, 36_864, 256_000, tied=True, norms=4, capped=True
    ),
    Model("Gemma-3-270M", 268_098_176, 18, 640, 4, 1, 256, 2048, 262_144, tied=True, norms=4),
    Model("Gemma-3-1B", 999_885_952, 26, 1152, 4, 1, 256, 6912, 262_144, tied=True, norms=4),
    Model("Gemma-3-4B", 3_880_263_168, 34, 2560, 8, 4, 256, 10_240, 262_208, tied=True, norms=4),
    Model("Gemma-3-12B", 11_765_788_416, 48, 3840, 16, 8, 256, 15_360, 262_208, tied=True, norms=4),
    Model("Gemma-3-27B", 27_009_002_240, 62, 5376, 32, 16, 128, 21_504, 262_208, tied=True, norms=4),
)
_OTHERS = (
    Model("DeepSeek-R1-Distill-Qwen-1.5B", 1_777_088_000, 28, 1536, 12, 2, 128, 8960, 151_936),
    Model("SmolLM2-135M", 134_515_008, 30, 576, 9, 3, 64, 1536, 49_152, tied=True),
    Model("SmolLM2-360M", 361_821_120, 32, 960, 15, 5, 64, 2560, 49_152, tied=True),
    Model("SmolLM2-1.7B", 1_711_376_384, 24, 2048, 32, 32, 64, 8192, 49_152, tied=True),
    Model("SmolLM3-3B", 3_075_098_624, 36, 2048, 16, 4, 128, 11_008, 128_256, tied=True),
    Model("Phi-3-mini", 3_821_079_552, 32, 3072, 32, 32, 96, 8192, 32_064),
    Model("Phi-4", 14_659_507_200, 40, 5120, 40, 10, 128, 17_920, 100_352),
    Model("phi-1_5", 1_418_270_720, 24, 2048, 32, 32, 64, 8192, 51_200, gated=False, norms=1),
    Model("phi-2", 2_779_683_840, 32, 2560, 32, 32, 80, 10_240, 51_200, gated=False, norms=1),
    Model("stablelm-2-1_6b", 1_644_515_328, 24, 2048, 32, 32, 64, 5632, 100_352),
    Model("c4ai-command-r7b", 8_027_901_952, 32, 4096, 32, 8, 128, 14_336, 256_000, tied=True),
    Model(
        "Qwen1.5-MoE-A2.7B",
        14_315_784_192,
        24,
        2048,
        16,
        16,
        128,
        11_264,
        151_936,
        active=2_690_000_000,
        experts=64,
        experts_used=8,
    ),
    Model(
        "DeepSeek-V2-Lite",
        15_706_484_224,
        27,
        2048,
        16,
        16,
        128,
        11_264,
        102_400,
        active=2_740_000_000,
        experts=66,
        experts_used=8,
    ),
    Model("OLMo-2-7B", 7_298_617_344, 32, 4096, 32, 32, 128, 11_008, 100_352),
    Model("GLM-4-9B", 9_400_279_040, 40, 4096, 32, 2, 128, 13_696, 151_552),
    Model(
        "GLM-4.5-Air",
        106_850_000_000,
        46,
        4096,
        96,
        8,
        128,
        12_672,
        151_552,
        active=13_400_000_000,
        experts=129,
        experts_used=9,
    ),
    Model(
        "gpt-oss-20B",
        20_910_000_000,
        24,
        2880,
        64,
        8,
        64,
        11_520,
        201_088,
        active=4_180_000_000,
        experts=32,
        experts_used=4,
    ),
    Model(
        "gpt-oss-120B",
        116_830_000_000,
        36,
        2880,
        64,
        8,
        64,
        11_520,
        201_088,
        active=5_700_000_000,
        experts=128,
        experts_used=4,
    ),
)
MODELS = (*_QWEN25, *_QWEN3, *_LLAMA, *_MISTRAL, *_GEMMA, *_OTHERS)

SAME_AS = {
    "QwQ-32B": "Qwen2.5-32B",
    "INTELLECT-2": "Qwen2.5-32B",
    "INTELLECT-3": "GLM-4.5-Air",
    "DeepSeek-R1-Distill-Qwen-7B": "Qwen2.5-7B",
    "DeepSeek-R1-Distill-Qwen-14B": "Qwen2.5-14B",
    "DeepSeek-R1-Distill-Qwen-32B": "Qwen2.5-32B",
    "DeepSeek-R1-Distill-Llama-8B": "Llama-3-8B",
    "DeepSeek-R1-Distill-Llama-70B": "Llama-3-70B",
    "DeepSeek-R1-0528-Qwen3-8B": "Qwen3-8B",
    "Meta-Llama-3-8B": "Llama-3-8B",
    "Meta-Llama-3-70B": "Llama-3-70B",
    "Meta-Llama-3.1-8B": "Llama-3-8B",
    "Meta-Llama-3.1-70B": "Llama-3-70B",
    "Meta-Llama-3.1-405B": "Llama-3.1-405B",
    "Llama-3.1-8B": "Llama-3-8B",
    "Llama-3.1-70B": "Llama-3-70B",
    "Llama-3.3-70B": "Llama-3-70B",
    "Qwen3-Coder-30B-A3B": "Qwen3-30B-A3B",
    "Qwen2.5-Coder-0.5B": "Qwen2.5-0.5B",
    "Qwen2.5-Coder-1.5B": "Qwen2.5-1.5B",
    "Qwen2.5-Coder-3B": "Qwen2.5-3B",
    "Qwen2.5-Coder-7B": "Qwen2.5-7B",
    "Qwen2.5-Coder-14B": "Qwen2.5-14B",
    "Qwen2.5-Coder-32B": "Qwen2.5-32B",
    "Qwen2.5-Math-1.5B": "Qwen2.5-1.5B",
    "Qwen2.5-Math-7B": "Qwen2.5-7B",
    "Qwen2.5-Math-72B": "Qwen2.5-72B",
    "OLMo-2-1124-7B": "OLMo-2-7B",
    "GLM-4-9B-0414": "GLM-4-9B",
    "GLM-Z1-9B-0414": "GLM-4-9B",
    "Mistral-Nemo-Base": "Mistral-Nemo",
    "Qwen2-0.5B": "Qwen2.5-0.5B",
    "Qwen2-1.5B": "Qwen2.5-1.5B",
    "Qwen2-7B": "Qwen2.5-7B",
    "Qwen2-72B": "Qwen2.5-72B",
    "Llama-7B": "Llama-2-7B",
    "Llama-13B": "Llama-2-13B",
    "CodeLlama-7B": "Llama-2-7B",
    "CodeLlama-13B": "Llama-2-13B",
    "TinyLlama_v1.1": "TinyLlama-1.1B",
    "Devstral-Small": "Mistral-Small-24B",
    "Magistral-Small": "Mistral-Small-24B",
    "Phi-3.5-mini": "Phi-3-mini",
    "AReaL-boba-RL-7B": "Qwen2.5-7B",
    "AReaL-boba-2-8B": "Qwen3-8B",
    "AReaL-boba-2-14B": "Qwen3-14B",
}
"""Other names of models with the same shape."""

SIZES = {
    "DeepSeek-V2": "236B-A21B",
    "DeepSeek-V2.5": "236B-A21B",
    "DeepSeek-V3": "671B-A37B",
    "DeepSeek-V3.1": "671B-A37B",
    "DeepSeek-V3.2": "671B-A37B",
    "DeepSeek-R1": "671B-A37B",
    "GLM-4.5": "355B-A32B",
    "GLM-4.6": "355B-A32B",
    "GLM-4.7": "355B-A32B",
    "GLM-4.7-Flash": "30B-A3B",
    "GLM-4.6V-Flash": "9B",
    "Kimi-K2": "1000B-A32B",
    "MiniMax-M2": "230B-A10B",
    "MiniMax-M2.1": "230B-A10B",
    "MiniMax-M2.5": "230B-A10B",
    "Jamba": "52B-A12B",
    "AI21-Jamba-1.5-Mini": "52B-A12B",
    "AI21-Jamba-1.5-Large": "398B-A94B",
    "dbrx": "132B-A36B",
    "grok-1": "314B-A79B",
    "Phi-3-small": "7.4B",
    "Phi-3-medium": "14B",
    "Phi-3.5-MoE": "42B-A6.6B",
    "Phi-4-multimodal": "5.6B",
    "SmolVLM": "2.2B",
    "command-r": "35B",
    "c4ai-command-r": "35B",
    "c4ai-command-r-plus": "104B",
    "starcoder": "15.5B",
    "gpt2": "124M",
    "gpt2-medium": "355M",
    "gpt2-large": "774M",
    "gpt2-xl": "1.5B",
    "distilgpt2": "82M",
    "bert-base": "110M",
    "bert-large": "340M",
    "roberta-base": "125M",
    "roberta-large": "355M",
    "gemma-3n-E2B": "5.4B",
    "gemma-3n-E4B": "7.8B",
}
"""The sizes of models whose names contain none, from their makers' model cards; their shapes are guessed."""
