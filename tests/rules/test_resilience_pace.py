"""How often a run saves, compared with its losses: only intervals that are far off are reported, with the
figures.
"""

from pathlib import Path

import pytest

from prime_train.spec.finding import Finding
from tests.rules.test_spec_corpus import Change, found, laid_out

SECONDS = ("tree/areal.yaml", "  freq_steps: 20\n  freq_secs: null", "  freq_steps: null\n  freq_secs: {}")
FOR_LONG = (("", "  hours: 12\n", ""), ("", "steps: 200", "steps: 1000"))


def reported(folder: Path, base: str, *changes: Change) -> list[Finding]:
    return [
        finding
        for finding in found(laid_out(folder, base, changes), folder)
        if finding.code in ("RE503", "RE509")
    ]


def every_s(seconds: int) -> Change:
    file, old, new = SECONDS
    return file, old, new.format(seconds)


def every(steps: int) -> Change:
    return "", "every_steps: 20", f"every_steps: {steps}"


@pytest.mark.parametrize("seconds", [600, 1800, 3600])
def test_an_interval_that_loses_little_more_than_the_best_is_left_alone(seconds: int, tmp_path: Path) -> None:
    assert reported(tmp_path, "areal", every_s(seconds)) == []


def test_ten_hours_between_two_checkpoints_are_reported_with_the_figures(tmp_path: Path) -> None:
    (finding,) = reported(tmp_path, "areal", every_s(36000))
    assert (finding.code, finding.severity) == ("RE509", "warning")
    assert "every 600 min" in finding.message
    assert "a preemption every 12.0 h" in finding.message
    assert "Young" in finding.fix


def test_an_interval_in_steps_is_counted_with_the_speed_of_the_gpus(tmp_path: Path) -> None:
    (finding,) = reported(tmp_path, "prime_rl", every(500), *FOR_LONG)
    assert (finding.code, finding.file) == ("RE509", "run.yaml")
    assert "(500 steps)" in finding.message


@pytest.mark.parametrize(
    "changes",
    [
        (every(500), ("", "spot: prefer", "spot: never")),
        (every(500), ("", "H100_80GB", "RTX8000_48GB"), ("tree/rl.toml", "Qwen/Qwen3-4B", "Qwen/Qwen3-0.6B")),
        (every(500), ("tree/rl.toml", "Qwen/Qwen3-4B", "acme/our-own")),
        (every(50),),
    ],
    ids=["on-demand", "a GPU whose speed is not known", "a model whose size is not known", "often enough"],
)
def test_nothing_is_reported_where_nothing_is_lost_or_known(
    changes: tuple[Change, ...], tmp_path: Path
) -> None:
    assert reported(tmp_path, "prime_rl", *changes, *FOR_LONG) == []


def test_a_run_that_saves_all_the_time_is_reported_how_much_of_it_that_takes(tmp_path: Path) -> None:
    short = [
        ("tree/rl.toml", f"{key} = {old}", f"{key} = {new}")
        for key, old, new in (("batch_size", 128, 16), ("seq_len", 4096, 2048))
    ]
    (finding,) = reported(tmp_path, "prime_rl", every(1), *short)
    assert finding.code == "RE509"
    assert "saved too often" in finding.message


def test_an_upload_that_is_slower_than_the_interval_is_reported_alone(tmp_path: Path) -> None:
    slow = ("", "  keep: 2", "  keep: 2\n  upload_mb_per_s_max: 5")
    assert [finding.code for finding in reported(tmp_path, "areal", every_s(1800), slow)] == ["RE503"]
