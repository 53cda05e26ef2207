"""AReaL on GPUs that train and generate in turns, and its time-outs and retries."""

from pathlib import Path

import pytest

from prime_train.checks.engine import findings_with_ignored
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding
from prime_train.trainers.areal.shared_gpu import RULES as SHARED
from prime_train.trainers.areal.timeouts import RULES as TIMEOUTS

RUN = """\
name: gsm8k
trainer:
  kind: areal
  command: python3 gsm8k_rl.py --config areal.yaml scheduler.type=local
  steps: 100
  code: {{folder: {folder}}}
hardware: {{gpus: [L40S_48GB], count: 1}}
budget: {{usd: 20}}
"""
SEPARATE = """\
experiment_name: e
trial_name: t
total_train_epochs: 10
enable_offload: true
rollout:
  backend: sglang:d1
  request_retries: 3
  scheduling_strategy: {type: separation}
gconfig: {n_samples: 4, max_new_tokens: 1024}
actor:
  backend: fsdp:d1
  path: Qwen/Qwen2.5-1.5B-Instruct
  gradient_checkpointing: true
  weight_update_mode: disk
  mb_spec: {max_tokens_per_mb: 10240}
  optimizer: {type: adam}
sglang: {context_length: 32768, mem_fraction_static: 0.8, attention_backend: triton}
train_dataset: {batch_size: 64, max_length: 1024}
"""
TOGETHER = SEPARATE.replace("{type: separation}", "{type: colocation, target: actor}")


def found(folder: Path, text: str, *changes: tuple[str, str]) -> tuple[Finding, ...]:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "areal.yaml").write_text(text)
    (folder / "run.yaml").write_text(RUN.format(folder=folder))
    (loaded,) = load_configs([folder / "run.yaml"])
    assert loaded.subject is not None, loaded.findings
    return findings_with_ignored(loaded.subject, rules=(*SHARED, *TIMEOUTS))


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


def test_a_server_with_a_gpu_for_itself_may_take_most_of_it(tmp_path: Path) -> None:
    assert found(tmp_path, SEPARATE) == ()


def test_the_share_of_an_example_on_one_card_of_48_gb_is_found_before_the_launch(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, TOGETHER)
    assert (finding.code, finding.value, Path(finding.file).name) == ("ME208", "0.8", "areal.yaml")
    assert finding.message == (
        "the server takes 0.8 of one L40S_48GB (38 GiB), and the trainer on the same GPU needs 32 to 43 GiB; "
        "9 GiB are left"
    )
    assert (
        found(
            tmp_path,
            TOGETHER,
            ("path: Qwen/Qwen2.5-1.5B-Instruct", "path: Qwen/Qwen2.5-0.5B-Instruct"),
            ("0.8", "0.3"),
        )
        == ()
    )


def test_a_share_that_suits_both_is_proposed_where_there_is_one(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, TOGETHER, ("Qwen2.5-1.5B", "Qwen2.5-0.5B"), ("10240", "4096"))
    assert finding.fix == "write 0.65, or use a GPU for each"
    assert (
        found(tmp_path, TOGETHER, ("Qwen2.5-1.5B", "Qwen2.5-0.5B"), ("10240", "4096"), ("0.8", "0.65")) == ()
    )


def test_what_areal_refuses_on_a_shared_gpu_is_refused_here(tmp_path: Path) -> None:
    assert codes(found(tmp_path, TOGETHER, ("enable_offload: true", "enable_offload: false"))) == [
        "TR419",
        "ME207",
    ]
    assert codes(found(tmp_path, TOGETHER, ("enable_offload: true\n", ""), ("0.8", "0.3"))) == ["TR419"]
    assert codes(found(tmp_path, TOGETHER, ("weight_update_mode: disk", "weight_update_mode: xccl")))[:1] == [
        "TR420"
    ]
    assert codes(found(tmp_path, TOGETHER, ("  weight_update_mode: disk\n", "")))[:1] == ["TR420"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("max_new_tokens: 1024", "max_new_tokens: 131072", "TR448"),
        ("request_retries: 3", "request_retries: 3\n  request_timeout: 30", "TR448"),
        ("request_retries: 3", "request_retries: 1", "TR449"),
        ("request_retries: 3", "request_retries: -1", "TR449"),
        ("Qwen/Qwen2.5-1.5B-Instruct", "Qwen/Qwen2.5-32B-Instruct", "TR447"),
        ("request_retries: 3", "request_retries: 3\n  setup_timeout: 60", "TR447"),
    ],
)
def test_limits_of_time_that_cannot_be_kept_are_found(old: str, new: str, code: str, tmp_path: Path) -> None:
    assert codes(found(tmp_path, SEPARATE, (old, new))) == [code]


def test_limits_of_time_that_suit_the_model_are_left_alone(tmp_path: Path) -> None:
    wide = ("request_retries: 3", "request_retries: 0\n  setup_timeout: 1800\n  request_timeout: 9000")
    assert (
        found(
            tmp_path,
            SEPARATE,
            wide,
            ("2.5-1.5B", "2.5-32B"),
            ("max_new_tokens: 1024", "max_new_tokens: 131072"),
        )
        == ()
    )


def test_settings_in_a_command_are_judged_though_their_file_comes_with_the_set_up(tmp_path: Path) -> None:
    """The repository's own config for one card, with the server's share of AReaL's example."""
    config = Path(__file__).parents[2] / "configs" / "areal-gsm8k.yaml"
    (loaded,) = load_configs([config])
    assert [one for _, subject in loaded.judged for one in findings_with_ignored(subject, rules=SHARED)] == []
    text = (
        config.read_text().replace("sglang.mem_fraction_static=0.25 ", "").replace("enable_offload=true", "")
    )
    (tmp_path / "run.yaml").write_text(text)
    (loaded,) = load_configs([tmp_path / "run.yaml"])
    seen = {
        finding.code
        for _, subject in loaded.judged
        for finding in findings_with_ignored(subject, rules=SHARED)
    }
    assert seen == {"ME207"}, (
        "the example's file is not here: whether it offloads is not known, the share of AReaL's examples is"
    )
