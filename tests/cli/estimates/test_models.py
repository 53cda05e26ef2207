"""`prime-train models` and `verify-model` as a user sees them: from the registry, from a hub, and with
errors.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.documented import check
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.hub import QWEN3_8B, TOKEN, FakeHub

GATED = replace(QWEN3_8B, id="meta-llama/Llama-3.1-8B", gated="manual")
NEW = replace(
    QWEN3_8B,
    id="somebody/new-8B",
    config={**(QWEN3_8B.config or {}), "max_position_embeddings": 1024},
    template="plain",
)


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    return Inside(tmp_path)


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeHub]:
    with FakeHub(QWEN3_8B, GATED, NEW) as fake:
        yield fake


def test_the_list_names_models_their_size_and_what_goes_wrong(shell: Shell) -> None:
    output = shell.ok("models", "list", "qwen3-")
    assert "Qwen/Qwen3-8B" in output
    assert "8.2B" in output
    assert "Llama" not in output
    assert "2026-08-21" in output
    assert "as of 2026-11-23" in output


def test_the_list_fits_80_columns(shell: Shell) -> None:
    done = shell.run("models", "list", COLUMNS="80")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_list_as_json_has_all_of_it(shell: Shell) -> None:
    (row,) = json.loads(shell.ok("models", "list", "Qwen3-8B", "--json"))["models"]
    assert (row["id"], row["context"], row["gated"]) == ("Qwen/Qwen3-8B", 40_960, "no")


def test_a_search_without_a_hit_says_what_is_near(shell: Shell) -> None:
    done = shell.run("models", "list", "qwen3-9b")
    assert done.returncode == 2
    assert "did you mean Qwen/Qwen3-" in done.stderr


def test_a_model_of_the_registry_is_checked_without_any_network(shell: Shell) -> None:
    done = shell.run("verify-model", "Qwen/Qwen3-8B", "--gpu", "h100-80gb", HF_ENDPOINT="http://127.0.0.1:1")
    assert done.returncode == 0
    assert "on each of 1 x 80 GB" in done.stdout
    assert "the registry, written by hand on 2026-11-21" in done.stdout


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        (
            "mistralai/Ministral-3-8B-Instruct-2512",
            1,
            ["Mistral3ForConditionalGeneration, from vLLM 0.11.0 on", "from Ministral3Config"],
        ),
        ("openai/gpt-oss-20b", 1, ["GptOssForCausalLM", "LlamaFactory#8826"]),
        ("inclusionAI/AReaL-boba-2-8B", 0, ["Qwen3ForCausalLM", "on each of 1 x 80 GB"]),
        (
            "SamsungSAILMontreal/TinyRecursiveModels",
            0,
            ["such as kind trm", "none serves it", "no language model"],
        ),
    ],
)
def test_models_of_every_trainer_are_known_with_where_their_numbers_come_from(
    shell: Shell, model: str, code: int, said: list[str]
) -> None:
    done = shell.run(
        "verify-model", model, "--gpu", "h100-80gb", HF_ENDPOINT="http://127.0.0.1:1", COLUMNS="240"
    )
    assert done.returncode == code, done.stdout
    assert [text for text in said if text not in done.stdout] == []


def test_a_model_that_cannot_be_served_there_leaves_with_1(shell: Shell) -> None:
    done = shell.run("verify-model", "Qwen/Qwen3-32B", "--gpu", "rtx4090", "--json")
    check("verify-model", json.loads(done.stdout))
    rows = {row["name"]: row["result"] for row in json.loads(done.stdout)["checks"]}
    assert (done.returncode, rows["memory, serving"]) == (1, "no")


def test_the_hub_is_queried_when_it_is_requested(shell: Shell, fake: FakeHub) -> None:
    done = shell.run("verify-model", NEW.id, "--hub", "--seq-len", "2048", HF_ENDPOINT=fake.url, COLUMNS="80")
    assert done.returncode == 1
    assert "1,024 tokens, less than the requested 2,048; request 1024 or less" in done.stdout
    assert "does not support tools" in done.stdout
    assert f"Hugging Face, commit {NEW.commit[:12]}" in done.stdout


def test_a_gated_model_is_no_good_without_access(shell: Shell, fake: FakeHub) -> None:
    done = shell.run("verify-model", GATED.id, "--hub", HF_ENDPOINT=fake.url, HF_TOKEN=TOKEN)
    assert (done.returncode, "your account has no access" in done.stdout) == (1, True)
    fake.let_in = True
    done = shell.run("verify-model", GATED.id, "--hub", HF_ENDPOINT=fake.url, HF_TOKEN=TOKEN)
    assert (done.returncode, "your token has access" in done.stdout) == (0, True)
    assert TOKEN not in done.stdout + done.stderr


def test_a_hub_that_cannot_be_reached_leaves_the_registry(shell: Shell) -> None:
    done = shell.run("verify-model", "Qwen/Qwen3-8B", "--hub", HF_ENDPOINT="http://127.0.0.1:1")
    assert done.returncode == 0
    assert "the registry, written by hand on 2026-11-21 (Hugging Face cannot be reached now" in done.stdout
    done = shell.run("verify-model", "somebody/new", "--hub", HF_ENDPOINT="http://127.0.0.1:1")
    assert (done.returncode, "is not in the registry" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("Qwen/Qwen3-8",), 1, "did you mean Qwen/Qwen3-8B"),
        (("Qwen/Qwen3-8B", "--gpu", "l40"), 2, "write one of"),
        (("../../etc/passwd", "--hub"), 4, "is not a model id"),
        (("nobody/nothing", "--hub"), 1, "the model nobody/nothing does not exist"),
    ],
)
def test_bad_wishes_get_a_line_and_a_code(
    shell: Shell, fake: FakeHub, args: tuple[str, ...], code: int, words: str
) -> None:
    done = shell.run("verify-model", *args, HF_ENDPOINT=fake.url)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_the_registry_is_read_anew(shell: Shell, fake: FakeHub) -> None:
    done = shell.run("models", "refresh", "--out", "fresh.json", HF_ENDPOINT=fake.url)
    assert (done.returncode, "2 of 51 models were read again" in done.stdout) == (0, True)
    assert "Qwen/Qwen3-4B: not on Hugging Face" in done.stderr
    rows = {row["id"]: row for row in json.loads((shell.here / "fresh.json").read_text())["models"]}
    assert rows["Qwen/Qwen3-8B"]["source"] == "hub"
    assert rows["Qwen/Qwen3-8B"]["works"]
    assert rows["Qwen/Qwen3-4B"]["source"] == "hand"
