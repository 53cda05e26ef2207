"""A model that is known to fail is refused before a machine is rented for it."""

from pathlib import Path

import pytest

from prime_train.checks.engine import findings_with_ignored
from prime_train.checks.known_failures import RULES
from prime_train.configs.loader import load_configs
from prime_train.estimate.models.known_failures import failures_of
from prime_train.spec.finding import Severity
from tests.cli.inside import Inside
from tests.rules.prime_rl_given import GOOD, changed, found_in

TRL = """\
model_name_or_path: {model}
output_dir: out
learning_rate: 1.0e-06
num_generations: 8
use_vllm: {vllm}
per_device_train_batch_size: 8
max_steps: 300
"""


@pytest.mark.parametrize(
    ("name", "text", "codes"),
    [
        ("rl.toml", changed(GOOD, ("Qwen/Qwen3-4B", "openai/gpt-oss-20b")), ["TR461"]),
        ("rl.toml", changed(GOOD, ("Qwen/Qwen3-4B", "unsloth/gpt-oss-20b-BF16")), ["TR461"]),
        ("rl.toml", GOOD, []),
        ("grpo.yaml", TRL.format(model="openai/gpt-oss-20b", vllm="true"), ["TR461"]),
        ("sft.yaml", TRL.format(model="openai/gpt-oss-20b", vllm="false"), []),
    ],
)
def test_rl_of_a_model_that_its_server_cannot_update_is_an_error(
    name: str, text: str, codes: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    (loaded,) = load_configs([tmp_path / name])
    assert loaded.subject is not None
    findings = findings_with_ignored(loaded.subject, rules=RULES)
    assert [finding.code for finding in findings] == codes
    assert all(finding.severity is Severity.ERROR and finding.value for finding in findings)


def test_a_model_is_known_by_its_name_without_its_owner() -> None:
    assert failures_of("openai/gpt-oss-120b")
    assert failures_of("/models/gpt-oss-20b/")
    assert not failures_of("openai/gpt-oss")
    assert not failures_of("Qwen/Qwen3-8B")


def test_verify_model_ends_with_a_failure_for_what_is_known_to_fail_and_for_a_model_that_sees(
    tmp_path: Path,
) -> None:
    shell = Inside(tmp_path)
    done = shell.run("verify-model", "openai/gpt-oss-20b")
    assert (done.returncode, "known failure" in done.stdout) == (1, True)
    assert shell.run("verify-model", "Qwen/Qwen2.5-VL-7B-Instruct").returncode == 1
    assert shell.run("verify-model", "Qwen/Qwen2.5-VL-7B-Instruct", "--vision").returncode == 0
    assert shell.run("verify-model", "Qwen/Qwen3-8B").returncode == 0


def test_a_model_that_sees_and_is_configured_as_a_text_model_is_an_error(tmp_path: Path) -> None:
    found = found_in(tmp_path, changed(GOOD, ("Qwen/Qwen3-4B", "Qwen/Qwen2.5-VL-3B-Instruct")))
    assert ("PR370", Severity.ERROR) in {(finding.code, finding.severity) for finding in found}
