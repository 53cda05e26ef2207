"""A config of Prime Intellect's hosted training becomes a run of prime-rl, in one command."""

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from prime_train.errors import UsageError
from prime_train.interop.imports.convert import Imported, imported
from prime_train.interop.imports.toml_text import toml_text
from prime_train.spec.choices import Spot
from prime_train.spec.reader import read_text
from prime_train.spec.spec import RunSpec
from tests.cli.shell import Shell
from tests.exhaustive import some_of

LORA = """\
model = "Qwen/Qwen3.5-4B"
max_steps = 200
batch_size = 256
rollouts_per_example = 8
learning_rate = 3e-5
lora_alpha = 32
max_inflight_rollouts = 96

[sampling]
max_tokens = 2048
temperature = 0.7
enable_thinking = false

[[env]]
id = "primeintellect/reverse-text"

[[env]]
name = "own"
taskset = { id = "me/my-env@1.2.0", level = "hard" }
harness = { id = "default", runtime = { type = "subprocess" } }
max_turns = 4

[eval]
interval = 20
num_examples = 30
eval_base_model = false

[[eval.env]]
id = "primeintellect/reverse-text"
rollouts_per_example = 4

[wandb]
project = "p"
entity = "e"

[checkpoints]
interval = 25
keep_cloud = -1
"""
SMALL = 'model = "Qwen/Qwen3.5-4B"\nmax_steps = 100\n\n[[env]]\nid = "primeintellect/reverse-text"\n'
FULL = """\
type = "full_finetune"
name = "Math Run"
gpu_type = "H200_141GB"
max_steps = 50
seq_len = 4096

[model]
name = "Qwen/Qwen3-4B-Instruct-2507"

[deployment]
num_train_gpus = 2
num_infer_gpus = 2

[ckpt]
interval = 10

[orchestrator]
batch_size = 128
group_size = 16

[[orchestrator.train.source]]
name = "math"
env.taskset = { id = "gsm8k" }
env.agent.harness = { id = "null" }
env.agent.runtime = { type = "subprocess" }

[trainer.optim]
lr = 1e-6

[inference.vllm]
max_model_len = 4096
"""


def made_of(text: str, folder: Path, name: str = "given.toml") -> Imported:
    (folder / name).write_text(text)
    return imported(folder / name, None, name="", usd=20.0)


def parts_of(made: Imported) -> tuple[RunSpec, dict[str, Any]]:
    """Return the run's config, and the values of prime-rl's."""
    spec = read_text(made.text, str(made.path)).spec
    assert spec is not None, made.text
    (text,) = made.files.values()
    return spec, tomllib.loads(text)


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("text", [LORA, SMALL, FULL])
def test_a_hosted_config_becomes_one_that_passes_validate_in_one_command(text: str, shell: Shell) -> None:
    shell.write("given.toml", text)
    done = shell.run("import", "given.toml", "--name", "mine", "--usd", "20", "-o", "configs/mine.yaml")
    assert done.returncode == 0, done.stderr
    assert "wrote configs/mine.yaml and configs/mine/rl.toml" in done.stdout
    assert "cannot" not in done.stderr
    checked = shell.run("validate", "configs")
    assert checked.returncode == 0, checked.stdout
    refused = shell.run("import", "given.toml", "--name", "mine", "--usd", "9", "-o", "configs/mine.yaml")
    assert (refused.returncode, "already exists and was not changed" in refused.stderr) == (2, True)


def test_settings_of_lora_are_those_of_prime_rl(tmp_path: Path) -> None:
    made = made_of(LORA, tmp_path)
    spec, values = parts_of(made)
    assert made.impossible == ()
    assert (spec.trainer.kind, spec.trainer.steps, spec.hardware.spot) == ("prime_rl", 200, Spot.PREFER)
    assert (spec.checkpoints.every_steps, spec.checkpoints.keep) == (25, 10_000)
    assert spec.wandb is not None
    assert (spec.wandb.project, spec.wandb.entity, spec.secrets) == ("p", "e", ("WANDB_API_KEY",))
    assert "H100_80GB" in spec.hardware.gpus
    assert spec.hardware.count == values["deployment"]["gpus_per_node"] == 2
    assert values["trainer"] == {
        "optim": {"type": "adamw", "lr": 3e-5},
        "model": {"lora": {"rank": 16, "alpha": 32.0}},
    }
    orchestrator = values["orchestrator"]
    assert (orchestrator["batch_size"], orchestrator["group_size"]) == (256, 8)
    assert orchestrator["concurrency"] == {"max_inflight": 96}
    assert orchestrator["train"]["sampling"] == {"max_completion_tokens": 2048, "temperature": 0.7}
    assert orchestrator["renderer"] == {"name": "qwen3.5", "enable_thinking": False}
    agent = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
    assert orchestrator["train"]["source"] == [
        {"name": "reverse-text", "env": {"taskset": {"id": "reverse-text"}, "agent": agent}},
        {
            "name": "own",
            "env": {
                "taskset": {"id": "my-env", "level": "hard"},
                "agent": {"harness": {"id": "bash"}, "runtime": {"type": "subprocess"}, "max_turns": 4},
            },
        },
    ]
    evaluation = orchestrator["eval"]
    assert (evaluation["interval"], evaluation["num_examples"]) == (20, 30)
    assert evaluation["skip_first_step"] is True
    assert evaluation["source"][0]["group_size"] == 4


def test_environments_are_installed_beside_prime_rl(tmp_path: Path) -> None:
    spec, _ = parts_of(made_of(LORA, tmp_path))
    of_prime_rl, of_hub = spec.setup
    assert of_prime_rl.endswith("uv sync --project ../prime-rl --frozen --inexact --package reverse-text")
    assert "my-env==1.2.0 --extra-index-url https://hub.primeintellect.ai/me/simple/" in of_hub


def test_a_model_gets_the_smallest_machine_that_it_fits(tmp_path: Path) -> None:
    small, _ = parts_of(made_of(SMALL, tmp_path))
    large, values = parts_of(made_of(SMALL.replace("3.5-4B", "3.5-35B-A3B"), tmp_path))
    assert (small.hardware.count, large.hardware.count) == (2, 8)
    assert values["inference"]["vllm"]["tensor_parallel_size"] == 2


def test_a_yaml_file_says_the_same(tmp_path: Path) -> None:
    text = "model: Qwen/Qwen3.5-4B\nmax_steps: 100\nenv:\n  - id: primeintellect/reverse-text\n"
    of_yaml = made_of(text, tmp_path, "given.yaml")
    assert of_yaml.impossible == ()
    assert parts_of(of_yaml)[1] == parts_of(made_of(SMALL, tmp_path))[1]


def test_a_full_run_keeps_prime_rls_own_settings(tmp_path: Path) -> None:
    made = made_of(FULL, tmp_path)
    spec, values = parts_of(made)
    given = tomllib.loads(FULL)
    for key in ("type", "name", "gpu_type", "max_steps"):
        del given[key]
    del given["ckpt"]["interval"]
    assert (made.impossible, values) == ((), given)
    assert (spec.name, spec.hardware.gpus, spec.hardware.count) == ("math-run", ("H200_141GB",), 4)
    assert (spec.trainer.steps, spec.checkpoints.every_steps) == (50, 10)


@pytest.mark.parametrize(
    ("text", "what", "line", "why"),
    [
        (f'loss = "sft"\n{SMALL}', "loss", 1, "orchestrator.algo"),
        (f'checkpoint_id = "x"\n{SMALL}', "checkpoint_id", 1, "download it"),
        (f'env_files = ["secrets.env"]\n{SMALL}', "env_files", 1, "add the names"),
        (f"frobnicate = 1\n{SMALL}", "frobnicate", 1, "no such setting"),
        (f"batch_size = 100\n{SMALL}", "batch_size", 1, "no multiple"),
        (f'max_steps = "many"\n{SMALL.replace("max_steps = 100", "")}', "max_steps", 1, "a whole number"),
        (f"{SMALL}args = {{ n = 3 }}\n", "env.args", 6, "env.taskset"),
        (f"{SMALL}[val]\ninterval = 5\n", "val", 6, "write its environments as eval"),
        (f"{SMALL}[[pre_batch_filters]]\ntype = 'zero_advantage'\n", "pre_batch_filters", 6, "gates"),
        (f"{SMALL}[sampling]\nmax_tokens = 50000\n", "sampling.max_tokens", 1, "do not fit"),
        (
            f"{SMALL}[sampling.temp_scheduler]\nstart_temperature = 1\n",
            "sampling.temp_scheduler",
            6,
            "one temperature",
        ),
        (SMALL.replace("reverse-text", "my-own"), "env.id", 4, "only tasksets of verifiers v1"),
        (SMALL.replace("primeintellect/reverse-text", "a b"), "env.id", 4, "not the id of an environment"),
        (
            SMALL.replace('id = "primeintellect/reverse-text"', 'taskset = { id = "mine" }'),
            "taskset.id",
            5,
            "comes from",
        ),
        (SMALL.replace("Qwen/Qwen3.5-4B", "acme/unheard-of"), "model", 1, "is unknown"),
        (SMALL.replace("Qwen3.5-4B", "Qwen3.5-397B-A17B"), "model", 1, "needs up to"),
        (
            FULL.replace("num_train_gpus = 2", "num_train_nodes = 2"),
            "deployment.num_train_nodes",
            11,
            "one machine",
        ),
        (FULL.replace('gpu_type = "H200_141GB"', 'gpu_type = "TPU"'), "gpu_type", 3, "hardware.gpus"),
        (
            FULL.replace('name = "Math', 'image_tag = "v1"\nname = "Math'),
            "image_tag",
            2,
            "trainer.prime_rl.ref",
        ),
        (FULL.replace("gsm8k", "me-own"), "env.taskset.id", 23, "comes from"),
    ],
)
def test_what_prime_rl_would_not_do_as_the_service_did_is_refused(
    text: str, what: str, line: int, why: str, tmp_path: Path
) -> None:
    found = [one for one in made_of(text, tmp_path).impossible if one.what.endswith(what) and why in one.why]
    assert [one.line for one in found] == [line]


def test_without_an_output_the_second_file_is_named_and_nothing_is_written(shell: Shell) -> None:
    shell.write("given.toml", SMALL)
    done = shell.run("import", "given.toml", "--usd", "20")
    assert done.returncode == 1
    assert "configs/given/rl.toml belongs to it: add --output configs/given.yaml to write both" in done.stderr
    assert not (shell.here / "configs").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[tool]\nx = 1\n", "no config of Prime Intellect's hosted training"),
        ("model = \n", "given.toml:1:"),
        ("model = 'x'\n[[env]]\nid = 1\n[env]\n", "given.toml:4:"),
        ("", "no config of Prime Intellect's hosted training"),
    ],
)
def test_a_toml_file_of_something_else_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        made_of(text, tmp_path)
    assert reason in str(refused.value)


def test_the_text_of_values_parses_to_the_same_values() -> None:
    values: dict[str, Any] = {
        "a b": 'quote " and \\ and \x7f and é\n',
        "n": [1, 2.5, True, "x"],
        "none": {},
        "t": {"u": {"v": {"w": 1}}, "list": [{"a": 1, "b": {"c": [{"d": 2}]}}, {}, {"a": []}]},
        "mixed": [1, {"a": {"b": "c"}}],
    }
    assert tomllib.loads(toml_text(values)) == values


@pytest.mark.parametrize("seed", some_of(range(60), one_in=20))
@pytest.mark.parametrize("text", [LORA, FULL], ids=["lora", "full"])
def test_a_damaged_file_becomes_a_config_or_is_refused(text: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = text.splitlines()
    for _ in range(chance.randint(1, 5)):
        lines = lines or [""]
        at = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                del lines[at]
            case 1:
                key = lines[at].split("=")[0]
                lines[at] = (
                    f"{key}= {chance.choice(['[]', '{}', '-1', 'true', '[[1]]', '{ a = { b = 1 } }', '1e9', 'nan'])}"
                )
            case 2:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case _:
                lines = lines[: at + 1]
    try:
        made = made_of("\n".join(lines), tmp_path)
    except UsageError:
        return
    assert read_text(made.text, "made.yaml").root is not None
    assert all(tomllib.loads(text) is not None for text in made.files.values())
