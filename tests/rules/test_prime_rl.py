"""Rules about prime-rl configs: each mistake is found once, in its line, by its rule; valid settings get no
finding.
"""

from collections import Counter
from pathlib import Path

import pytest

from prime_train.spec.finding import Severity
from prime_train.trainers.prime_rl.rules.all_rules import RULES
from tests.rules.prime_rl_given import CONFIGS, GOOD, Mistake, changed, found, found_in, line, mistakes


@pytest.mark.parametrize("error", mistakes(), ids=lambda error: f"{error.code}-{error.name}")
def test_an_error_is_found_in_its_line_and_nothing_else(error: Mistake, tmp_path: Path) -> None:
    findings = found_in(tmp_path, error.text)
    assert [(finding.code, finding.line) for finding in findings] == [
        (error.code, line(error.text, error.at))
    ], findings
    assert error.says in f"{findings[0].message} / {findings[0].fix}"
    assert findings[0].fix


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_what_is_right_is_left_alone(path: Path) -> None:
    assert [finding for finding in found(path) if finding.severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    "part",
    [
        '[model]\nname = "Qwen/Qwen3-8B"\n[orchestrator.renderer]\nname = "qwen3"\n',
        '[[orchestrator.train.source]]\nenv.taskset.id = "sums"\n',
        "[trainer.model]\ncp = 4\n",
        "[orchestrator.train.sampling]\nmax_completion_tokens = 8192\n",
        "[orchestrator]\nseq_len = 8192\n[inference.vllm]\nmax_model_len = 8192\n",
        "[trainer]\n[inference.vllm]\nmax_model_len = 1024\n",
        '[trainer]\n[deployment]\ntype = "multi_node"\nnum_train_nodes = '
        "2\n[inference.vllm]\ntensor_parallel_size = 8\n",
        '[trainer.scheduler]\ntype = "cosine"\n[orchestrator]\ngroup_size = 24\n',
        '[trainer.model.vlm]\nvision_encoder_attr = "a"\nlanguage_model_attr = "b"\n[resume]\n[run]\nname = '
        '"a"\n',
    ],
)
def test_a_part_of_a_config_is_not_blamed_for_what_the_rest_says(part: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, part) == ()


def test_a_part_of_a_config_is_blamed_for_what_it_says_itself(tmp_path: Path) -> None:
    assert [
        finding.code for finding in found_in(tmp_path, "[trainer.optim]\nlrr = 1\n[inference.vllm]\ntp = 2\n")
    ] == ["PR301", "PR316"]


@pytest.mark.parametrize(
    "text",
    [
        '[model]\nname = "a"\n[data]\ntype = "sft"\n[deployment]\nnum_gpus = 2\n',
        '[data]\nname = "a"\n[optim]\nlr = 1\n[[eval.source]]\nname = '
        '"b"\n[inference]\n[deployment]\nnum_train_gpus = 1\n',
        'batch_size = 8\n[[train.source]]\nname = "a"\n[weight_broadcast]\ntype = '
        '"filesystem"\n[renderer]\nname = "default"\n',
        "[vllm]\ntp = 2\n[deployment]\na = 1\n",
    ],
)
def test_configs_of_other_commands_are_not_judged(text: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, text) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gpu_memory_utilization = 0.85", "gpu_memory_utilization = 1.0"),
        ("max_completion_tokens = 2048", "max_completion_tokens = 3596"),
        ("num_infer_gpus = 6", "num_infer_gpus = 2"),
        ("interval = 10\n", "interval = 200\n"),
        ("keep_last = 2", "keep_last = 1"),
        ("port = 9400", "port = 8001"),
        ('name = "arithmetic"', 'name = "group/first..try"'),
        ("[trainer.optim]", "[trainer.model.lora]\nrank = 512\n[trainer.optim]"),
        (
            "[trainer.optim]",
            '[trainer.scheduler]\ntype = "linear"\nwarmup_steps = 100\ndecay_steps = 100\n[trainer.optim]',
        ),
        ("batch_size = 256", "batch_size = 240"),
        ("lr = 1e-5", 'lr = "1e-5"'),
        ("cp = 2", "cp = 2\nseq_len = 4096"),
        (
            "tensor_parallel_size = 2",
            'tensor_parallel_size = 2\nhf_overrides = { a = 1 }\nsome-new-setting = "x"',
        ),
        ("cp = 2", "cp = 1\nep = 2"),
        ("digits = 3", 'digits = 3, executor_backend = "local"'),
        ("[trainer.optim]", '[orchestrator.renderer]\nname = "prime-qwen3"\n[trainer.optim]'),
        ("[trainer.optim]", '[orchestrator.tokenizer]\nname = "Qwen/Qwen3-8B"\n[trainer.optim]'),
        ("max_completion_tokens = 2048", "max_completion_tokens = 2048\ntemperature = 0.1"),
        (
            "[trainer.optim]",
            '[orchestrator.model.client]\nbase_url = "http://localhost:8000/v1"\n[trainer.optim]',
        ),
    ],
)
def test_what_is_near_an_error_is_none(old: str, new: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, changed(GOOD, (old, new))) == ()


def test_a_folder_to_resume_is_looked_for_beside_the_config(tmp_path: Path) -> None:
    text = changed(GOOD, ("[run]", '[resume]\ndir = "old/checkpoints/step_50"\n[run]'))
    (finding,) = found_in(tmp_path, text)
    assert (finding.code, finding.severity, finding.line) == ("PR343", Severity.NOTE, line(text, "dir"))
    (tmp_path / "old" / "checkpoints" / "step_50").mkdir(parents=True)
    assert found_in(tmp_path, text) == ()


def test_a_folder_of_another_machine_is_not_looked_for(tmp_path: Path) -> None:
    assert (
        found_in(tmp_path, changed(GOOD, ("[run]", '[resume]\ndir = "/workspace/old/step_50"\n[run]'))) == ()
    )


def test_every_code_is_its_own_and_says_what_happens() -> None:
    assert max(Counter(rule.code for rule in RULES).values()) == 1
    assert all(rule.title and rule.why and rule.fix for rule in RULES)
