"""A misspelt name in a prime-rl config is one mistake: the consequences of its absence are not reported as
well.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.checks.engine import findings_with_ignored
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding, Severity
from tests.rules.prime_rl_given import CONFIGS, GOOD, KNOWN, SPEC, changed, found_in, found_in_run

VISION = (CONFIGS / "vision.toml").read_text(encoding="utf-8")


def turned(name: str) -> str:
    """Return the name with two letters in its middle swapped."""
    at = next(at for at in range((len(name) - 1) // 2, len(name)) if name[at] != name[at + 1])
    return f"{name[:at]}{name[at + 1]}{name[at]}{name[at + 2 :]}"


def misspelt(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each line whose name is prime-rl's, and the text with that name misspelt."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        name = line.strip("[]").rpartition(".")[2] if line.startswith("[") else line.partition(" = ")[0]
        if not line or line.startswith(("#", "env.")) or ".env" in line:
            continue
        wrong = turned(name).join(line.rsplit(name, 1) if line.startswith("[") else line.split(name, 1))
        yield at + 1, "\n".join([*lines[:at], wrong, *lines[at + 1 :]])


@pytest.mark.parametrize("text", [GOOD, VISION], ids=["good", "vision"])
def test_a_misspelt_name_is_all_that_is_reported(text: str, tmp_path: Path) -> None:
    for number, wrong in misspelt(text):
        findings = found_in(tmp_path, wrong)
        assert [finding.line for finding in findings] == [number], (wrong.splitlines()[number - 1], findings)
        assert findings[0].code in ("PR301", "PR316")


def test_a_misspelt_name_is_all_that_is_reported_a_run(tmp_path: Path) -> None:
    for number, wrong in misspelt(GOOD):
        findings = found_in_run(tmp_path, wrong)
        assert [finding.line for finding in findings] == [number], (wrong.splitlines()[number - 1], findings)


def test_what_is_wrong_besides_is_reported_besides(tmp_path: Path) -> None:
    text = changed(GOOD, ("group_size = 16", "group_sise = 16"), ("cp = 2", "cp = 4"))
    assert [finding.code for finding in found_in(tmp_path, text)] == ["PR323", "PR301"]


def test_a_section_that_is_misspelt_once_is_read_with_its_rest(tmp_path: Path) -> None:
    findings = found_in_run(tmp_path, changed(GOOD, ("[orchestrator]\n", "[orchestrater]\n")))
    assert [(finding.code, finding.fix) for finding in findings] == [("PR301", "did you mean orchestrator?")]


def test_a_config_is_known_by_a_misspelt_name_too(tmp_path: Path) -> None:
    (finding,) = found_in(tmp_path, "[orchestratr]\nbatch_size = 64\n\n[inference]\n")
    assert (finding.code, finding.line) == ("PR301", 1)


def test_memory_is_counted_with_what_was_meant(tmp_path: Path) -> None:
    """Without LoRA the model would not fit."""
    small = changed(
        GOOD,
        ("num_train_gpus = 2", "num_train_gpus = 1"),
        ("num_infer_gpus = 6", "num_infer_gpus = 1"),
        ("cp = 2\n", ""),
    )
    text = changed(
        small,
        ("tensor_parallel_size = 2\n", ""),
        ("[trainer.optim]", "[trainer.model.loar]\nrank = 8\n[trainer.optim]"),
    )
    assert "ME201" in {
        finding.code for finding in _all(tmp_path, changed(text, ("[trainer.model.loar]\nrank = 8\n", "")))
    }
    assert [finding.code for finding in _all(tmp_path, text) if finding.severity is Severity.ERROR] == [
        "PR301"
    ]


def _all(folder: Path, text: str) -> tuple[Finding, ...]:
    """Return the findings of every rule, for two small GPUs."""
    (folder / "rl.toml").write_text(text, encoding="utf-8")
    spec = changed(
        SPEC.format(ref=KNOWN, folder=folder), ("[H100_80GB]", "[RTX4090_24GB]"), ("count: 8", "count: 2")
    )
    (folder / "run.yaml").write_text(spec, encoding="utf-8")
    (loaded,) = load_configs([folder / "run.yaml"])
    assert loaded.subject is not None
    return findings_with_ignored(loaded.subject)


def test_what_is_wrong_in_a_renamed_section_is_reported_in_the_first_round(tmp_path: Path) -> None:
    """`sampling` has moved: its limit, which leaves no room for a prompt, and its misspelt setting are not
    left for a second round.
    """
    moved = changed(
        GOOD,
        ("[orchestrator.train.sampling]\n", "[orchestrator.sampling]\ntemperatur = 0.8\n"),
        ("max_model_len = 4096", "max_model_len = 2048"),
    )
    findings = found_in(tmp_path, moved)
    told = {(finding.code, moved.splitlines()[finding.line - 1]) for finding in findings}
    assert ("PR302", "[orchestrator.sampling]") in told
    assert ("PR310", "max_completion_tokens = 2048") in told
    assert ("PR301", "temperatur = 0.8") in told


def test_the_value_of_a_moved_setting_is_judged_at_its_new_place(tmp_path: Path) -> None:
    text = (
        changed(GOOD, ("[monitors.wandb]", "[ckpt2]\n[monitors.wandb]"))
        .replace("[ckpt2]\n", "")
        .replace("keep_last = 2", "keep = 0")
    )
    assert [finding.code for finding in found_in(tmp_path, text)] == ["PR302", "PR305"]
