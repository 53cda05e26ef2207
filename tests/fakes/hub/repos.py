"""A model's repository as the hub holds it."""

import json
from dataclasses import dataclass, field
from typing import Any

COMMIT = "b968826d9c46dd6066d109eabc6255188de91218"
TEMPLATE = "{%- if tools %}{{ tools }}{%- endif %}{% for message in messages %}{{ message.content }}{% endfor %}"


@dataclass
class Repo:
    """`gated`: False, "auto" or "manual"; `config` None: the repository has no config.json."""

    id: str
    config: dict[str, Any] | None
    params: int | None = None
    gated: str | bool = False
    pipeline: str = "text-generation"
    template: str | list[dict[str, str]] | None = TEMPLATE
    commit: str = COMMIT
    more: dict[str, Any] = field(default_factory=dict)
    """On top of what the hub says, or instead of it."""

    @property
    def files(self) -> dict[str, bytes]:
        made = {"README.md": b"# A model\n"}
        return made | ({"config.json": json.dumps(self.config, indent=2).encode()} if self.config is not None else {})

    def info(self) -> dict[str, Any]:
        brief: dict[str, Any] = (
            {key: self.config[key] for key in ("architectures", "model_type") if key in self.config} if self.config else {}
        )
        if self.template is not None:
            brief["tokenizer_config"] = {"eos_token": "<|im_end|>", "chat_template": self.template}
        told: dict[str, Any] = {
            "_id": "680da1d8b7ab4c5ad2f7d0a1",
            "id": self.id,
            "modelId": self.id,
            "author": self.id.partition("/")[0],
            "sha": self.commit,
            "lastModified": "2025-07-26T03:49:13.000Z",
            "createdAt": "2025-04-27T03:42:21.000Z",
            "private": False,
            "gated": self.gated,
            "disabled": False,
            "downloads": 3_421_000,
            "likes": 600,
            "library_name": "transformers",
            "pipeline_tag": self.pipeline,
            "tags": ["transformers", "safetensors"],
            "config": brief,
            "siblings": [{"rfilename": name} for name in self.files],
        }
        if self.params is not None:
            told["safetensors"] = {"parameters": {"BF16": self.params}, "total": self.params}
        return told | self.more


QWEN3_8B = Repo(
    "Qwen/Qwen3-8B",
    {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "head_dim": 128,
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "max_position_embeddings": 40_960,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 151_936,
    },
    8_190_735_360,
)
