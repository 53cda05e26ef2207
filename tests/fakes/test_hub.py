"""The fake's responses are understood by Hugging Face's own client."""

import json
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub as hub
import pytest
from huggingface_hub import errors

from tests.fakes.hub import QWEN3_8B, TOKEN, FakeHub, Repo

GATED = Repo(
    "meta-llama/Llama-3.1-8B",
    {"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    8_030_261_248,
    gated="manual",
)


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeHub]:
    with FakeHub(QWEN3_8B, GATED) as fake:
        yield fake


def test_its_client_reads_what_we_read(fake: FakeHub) -> None:
    reported = hub.HfApi(endpoint=fake.url, token=False).model_info("Qwen/Qwen3-8B")
    assert (reported.id, reported.sha, reported.gated, reported.pipeline_tag) == (
        "Qwen/Qwen3-8B",
        QWEN3_8B.commit,
        False,
        "text-generation",
    )
    assert reported.safetensors is not None
    assert reported.config is not None
    assert (reported.safetensors.total, reported.config["architectures"]) == (
        8_190_735_360,
        ["Qwen3ForCausalLM"],
    )
    assert "tools" in reported.config["tokenizer_config"]["chat_template"]


def test_its_client_fetches_a_file(fake: FakeHub, tmp_path: Path) -> None:
    path = hub.hf_hub_download(
        "Qwen/Qwen3-8B", "config.json", endpoint=fake.url, cache_dir=tmp_path, token=False
    )
    assert json.loads(Path(path).read_text())["hidden_size"] == 4096


def test_its_client_knows_what_is_gated(fake: FakeHub, tmp_path: Path) -> None:
    reported = hub.HfApi(endpoint=fake.url, token=TOKEN).model_info("meta-llama/Llama-3.1-8B")
    assert reported.gated == "manual"
    with pytest.raises(errors.GatedRepoError):
        hub.hf_hub_download(
            "meta-llama/Llama-3.1-8B", "config.json", endpoint=fake.url, cache_dir=tmp_path, token=TOKEN
        )


@pytest.mark.parametrize("token", [False, TOKEN])
def test_its_client_knows_what_is_not_there(fake: FakeHub, token: str | bool) -> None:
    with pytest.raises(errors.RepositoryNotFoundError):
        hub.HfApi(endpoint=fake.url, token=token).model_info("nobody/nothing")
