"""Findings on a config that requests too little, or too much: each mistake at its line, and nothing on near
misses.
"""

from pathlib import Path

import pytest

from prime_train.checks import gpu_memory as memory
from prime_train.checks import machine as hardware
from prime_train.checks.engine import findings_with_ignored
from prime_train.configs.loader import load_configs
from prime_train.estimate import gpus
from prime_train.spec.finding import Finding

CONFIG = """\
name: grpo
trainer:
  kind: prime_rl
  steps: 200
  prime_rl:
    config: rl.toml
    ref: 559b4477000000000000000000000000000000aa
  code:
    folder: {folder}
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 2
  disk_gib: 400
budget:
  usd: 100
checkpoints:
  every_steps: 50
"""
TOML = """\
seq_len = 4096
max_steps = 200
[model]
name = "Qwen/Qwen3-4B"
[ckpt]
interval = 50
keep_last = 2
[deployment]
num_train_gpus = 1
num_infer_gpus = 1
[orchestrator]
batch_size = 128
[trainer.model]
optim_cpu_offload = true
[inference.vllm]
max_model_len = 4096
gpu_memory_utilization = 0.85
"""
TORCHRUN = """\
name: pilot
trainer:
  kind: torchrun
  command: train.py
  workers: 2
hardware:
  gpus: [H100_80GB]
  count: 2
budget:
  usd: 10
"""


class Given:
    """The configs with some of their words replaced, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *, config: tuple[str, str] = ("", ""), toml: tuple[str, str] = ("", "")
    ) -> list[tuple[str, str, int]]:
        return [
            (finding.code, Path(finding.file).name, finding.line)
            for finding in self.found(config=config, toml=toml)
        ]

    def found(
        self, *, config: tuple[str, str] = ("", ""), toml: tuple[str, str] = ("", ""), base: str = CONFIG
    ) -> list[Finding]:
        (self.folder / "rl.toml").write_text(TOML.replace(*toml))
        file = self.folder / "run.yaml"
        file.write_text(base.replace(*config).format(folder=self.folder))
        (loaded,) = [loaded for loaded in load_configs([file]) if loaded.file == str(file)]
        assert loaded.subject is not None, loaded.findings
        return list(findings_with_ignored(loaded.subject, rules=(*memory.RULES, *hardware.RULES)))


@pytest.fixture(name="given")
def _given(tmp_path: Path) -> Given:
    return Given(tmp_path)


def line_of(text: str, word: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if word in line)


def test_a_config_that_fits_is_not_spoken_of(given: Given) -> None:
    assert given() == []


# ------------------------------------------------------------------------------------------------------------
# memory


def test_a_trainer_that_cannot_fit_is_an_error_at_the_kind_of_gpu(given: Given) -> None:
    (finding,) = given.found(toml=("Qwen3-4B", "Qwen3-14B"), config=("disk_gib: 400", "disk_gib: 4000"))
    assert (finding.code, finding.line, finding.severity) == ("ME201", line_of(CONFIG, "gpus:"), "error")
    assert "the trainer needs 1" in finding.message
    assert "H100_80GB has 78 GiB" in finding.message


def test_what_exceeds_the_gpu_by_the_estimate_alone_is_a_warning(given: Given) -> None:
    # 8.2 B parameters with weights and gradients in 32 bit take 61 GiB; what is made of 65,536 tokens
    # decides.
    longer = (
        'seq_len = 4096\nmax_steps = 200\n[model]\nname = "Qwen/Qwen3-4B"',
        'seq_len = 65536\n[model]\nname = "Qwen3-8B"',
    )
    found = given.found(toml=longer)
    assert [(finding.code, finding.severity) for finding in found] == [("ME202", "warning")]


@pytest.mark.parametrize(
    "toml",
    [
        ("optim_cpu_offload = true", "optim_cpu_offload = true\nlora = {rank = 16}"),
        ("num_train_gpus = 1", "num_train_gpus = 2"),
        ("Qwen/Qwen3-4B", "acme/our-own"),
    ],
)
def test_near_misses_of_a_trainer_are_silent(given: Given, toml: tuple[str, str]) -> None:
    assert [code for code, _, _ in given(toml=toml) if code.startswith("ME")] == []


def test_a_server_without_room_for_its_weights_is_an_error_where_its_share_is_reported(given: Given) -> None:
    assert given(toml=("= 0.85", "= 0.1")) == [("ME203", "rl.toml", line_of(TOML, "gpu_memory_utilization"))]


def test_a_cache_that_holds_no_sequence_is_an_error_where_the_length_is_reported(given: Given) -> None:
    found = given(toml=("max_model_len = 4096", "max_model_len = 900000"))
    assert found == [("ME204", "rl.toml", line_of(TOML, "max_model_len"))]
    assert given(toml=("max_model_len = 4096", "max_model_len = 262144")) == []


def test_of_several_kinds_each_is_judged_by_itself(given: Given) -> None:
    found = given.found(config=("[H100_80GB]", "[H100_80GB, RTX4090_24GB]"))
    assert [(finding.code, finding.value) for finding in found] == [("ME201", "RTX4090_24GB")]


def test_more_gpus_dealt_out_than_rented_are_left_to_the_rule_about_that(given: Given) -> None:
    assert given(config=("count: 2", "count: 1"), toml=("num_infer_gpus = 1", "num_infer_gpus = 2")) == []


def test_on_one_gpu_the_trainer_must_fit_into_what_the_server_leaves(given: Given) -> None:
    one = ("count: 2", "count: 1")
    (full,) = given.found(config=one)
    assert (full.code, full.line, full.severity) == (
        "ME201",
        line_of(TOML, "gpu_memory_utilization"),
        "error",
    )
    assert "of which the server's share of 0.85 leaves 12 GiB" in full.message
    assert full.fix == "write gpu_memory_utilization = 0.5, or use two GPUs"
    assert given(config=one, toml=("= 0.85", "= 0.5")) == []
    assert [code for code, *_ in given(config=one, toml=("= 0.85", "= 0.1"))] == ["ME203"]


def test_on_one_gpu_a_model_that_fits_with_no_share_is_told_to_use_two(given: Given) -> None:
    found = given.found(config=("count: 2", "count: 1"), toml=("Qwen3-4B", "Qwen3-8B"))
    assert [finding.code for finding in found] == ["ME201"]
    assert found[0].fix.startswith("use two GPUs, or a larger kind")


# ------------------------------------------------------------------------------------------------------------
# hardware


def test_a_kind_nobody_rents_out_is_a_warning_with_what_was_meant(given: Given) -> None:
    (finding,) = given.found(config=("H100_80GB", "H10O_80GB"))
    assert (finding.code, finding.line, finding.severity) == ("HW101", line_of(CONFIG, "gpus:"), "warning")
    assert "H100" in finding.fix


def test_a_kind_with_a_memory_that_nobody_rents_out_is_a_warning_with_those_that_there_are(
    given: Given,
) -> None:
    finding = next(found for found in given.found(config=("H100_80GB", "H100_81GB")) if found.code == "HW101")
    assert "H100 is not known with 81 GB of memory" in finding.message
    assert finding.fix == "write H100_80GB"


@pytest.mark.parametrize("kind", sorted(gpus.RENTED))
def test_kinds_that_are_rented_out_are_known(given: Given, kind: str) -> None:
    assert [code for code, _, _ in given(config=("H100_80GB", kind)) if code.startswith("HW")] == []


def test_a_kind_without_its_memory_finds_no_offer(given: Given) -> None:
    (finding,) = given.found(config=("H100_80GB", "H200"))
    assert (finding.code, finding.line) == ("HW102", line_of(CONFIG, "gpus:"))
    assert finding.fix == "write H200_141GB or H200_96GB"
    assert given(config=("provider: prime\n  gpus: [H100_80GB]", "gpus: [H100]")) == []


def test_workers_that_share_a_gpu_are_an_error_and_gpus_without_one_a_note(given: Given) -> None:
    many = given.found(base=TORCHRUN, config=("workers: 2", "workers: 4"))
    idle = given.found(base=TORCHRUN, config=("count: 2", "count: 4"))
    assert [(finding.code, finding.line) for finding in many] == [("HW103", line_of(TORCHRUN, "workers:"))]
    assert [(finding.code, finding.line, finding.severity) for finding in idle] == [
        ("HW104", line_of(TORCHRUN, "count:"), "note")
    ]
    assert given.found(base=TORCHRUN, config=("workers: 2", "workers: 1")) == []
    assert given.found(base=TORCHRUN) == []


def test_a_disk_that_checkpoints_fill_is_an_error(given: Given) -> None:
    found = given.found(config=("disk_gib: 400", "disk_gib: 150"))
    assert [(finding.code, finding.line) for finding in found] == [("HW105", line_of(CONFIG, "disk_gib:"))]
    assert "3 checkpoints of 45" in found[0].message
    assert given(config=("disk_gib: 400", "disk_gib: 160")) == []


def test_a_disk_that_is_not_requested_or_ones_own_is_not_judged(given: Given) -> None:
    assert given(config=("  disk_gib: 400\n", "")) == []
    assert (
        given(
            config=(
                "provider: prime\n  gpus: [H100_80GB]\n  count: 2\n  disk_gib: 400",
                "provider: local\n  disk_gib: 20",
            )
        )
        == []
    )


def test_a_disk_without_checkpoints_needs_only_the_model(given: Given) -> None:
    nothing_saved = ("[ckpt]\ninterval = 50\nkeep_last = 2\n", "")
    assert [
        code
        for code, _, _ in given(config=("checkpoints:\n  every_steps: 50\n", ""), toml=nothing_saved)
        if code == "HW105"
    ] == []


def test_what_is_offloaded_must_find_room_in_the_host(given: Given) -> None:
    found = given.found(toml=('name = "Qwen/Qwen3-4B"', 'name = "Llama-3-70B"'))
    assert "HW106" in [finding.code for finding in found]
    assert "HW106" not in [
        code for code, _, _ in given(toml=('name = "Qwen/Qwen3-4B"', 'name = "Qwen3-32B"'))
    ]


@pytest.mark.parametrize(
    "number", ["-1", "0", "99999999999999999999999999", "1e300", "inf", "nan", '"many"', "true"]
)
@pytest.mark.parametrize(
    "key", ["seq_len", "num_train_gpus", "num_infer_gpus", "max_model_len", "gpu_memory_utilization"]
)
def test_numbers_that_make_no_sense_are_left_to_other_rules(given: Given, key: str, number: str) -> None:
    old = next(line for line in TOML.splitlines() if line.startswith(key))
    given(toml=(old, f"{key} = {number}"))
