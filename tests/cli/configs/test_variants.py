"""A config with variants, as `validate`, `memory` and `run --dry-run` show it."""

import json
from pathlib import Path

import pytest

from prime_train.configs.loader import load_configs
from prime_train.estimate.run_costs import run_costs
from prime_train.launch.review import review
from prime_train.market.quotes import Market
from prime_train.planning.offered import PricedOffers
from prime_train.runs.offer import Offer
from tests.cli.inside import Inside

CONFIG = """\
name: sizes
trainer:
  kind: torchrun
  command: train.py {checkpoints}
  resume: --resume {checkpoint}
  steps: 100
checkpoints: {every_steps: 10}
hardware:
  gpus: [RTX4090_24GB, H100_80GB]
  disk_gib: 1
  variants:
    - {count: 2, gpu_gb_min: 80, set: {trainer.workers: 2}}
    - {count: 1, gpu_gb_min: 24}
budget: {usd: 5}
"""
HERE = CONFIG.replace("gpus: [RTX4090_24GB, H100_80GB]", "provider: local").replace(
    "{count: 1, gpu_gb_min: 24}", "{count: 0}"
)


@pytest.fixture(name="inside")
def _inside(tmp_path: Path) -> Inside:
    inside = Inside(tmp_path)
    inside.write("train.py", "")
    return inside


def test_each_variant_is_judged_as_a_config_of_its_own_and_findings_name_it(inside: Inside) -> None:
    inside.write("right.yaml", CONFIG)
    assert ": ok" in inside.ok("validate", "right.yaml")
    inside.write("wrong.yaml", CONFIG.replace("trainer.workers: 2", "trainer.workers: 4"))
    done = inside.run("validate", "wrong.yaml", "--json")
    (found,) = json.loads(done.stdout)
    assert (found["code"], found["line"]) == ("HW103", 12)
    assert found["message"].startswith("with variant 1 (2 GPUs of 80 GB or more), 4 workers share 2 GPUs")
    assert inside.run("run", "wrong.yaml").returncode == 1


def test_what_is_wrong_with_every_variant_is_said_once(inside: Inside) -> None:
    inside.write("wrong.yaml", CONFIG.replace("train.py {checkpoints}", "tarin.py {checkpoints}"))
    found = json.loads(inside.run("validate", "wrong.yaml", "--json").stdout)
    assert [one["message"].split()[:4] for one in found] == [["there", "is", "no", "file"]]


def test_a_dry_run_says_which_variant_each_offer_would_get(inside: Inside) -> None:
    inside.write("here.yaml", HERE)
    assert "launch on local local-spot (spot) with variant 2 (no GPU)" in inside.ok(
        "run", "here.yaml", "--dry-run"
    )
    offers = json.loads(inside.ok("run", "here.yaml", "--dry-run", "--json"))["offers"]
    assert {offer["variant"] for offer in offers} == {"variant 2 (no GPU)"}
    inside.write("none.yaml", HERE.replace("{count: 0}", "{count: 1}"))
    done = inside.run("run", "none.yaml")
    assert done.returncode == 1
    assert "has 0 GPUs, but hardware.variants has 2 GPUs of 80 GB or more, 1 GPU" in done.stdout


def test_what_the_command_line_sets_counts_on_every_machine_whatever_a_variant_sets(inside: Inside) -> None:
    sets = (
        "environment.BATCH: '64', environment.LR: '1', smoke: {command: a, timeout_s: "
        "7}, "
        "trainer.command: 'python x.py {checkpoints}'"
    )
    config = (
        HERE.replace("kind: torchrun", "kind: command").replace(
            "{count: 0}", f"{{count: 0, set: {{{sets}}}}}"
        )
        + "smoke: {command: b}\n"
    )
    inside.write("here.yaml", config.replace("{trainer.workers: 2}", "{environment.BATCH: '128'}"))
    given = (
        "-e",
        "BATCH=8",
        "--set",
        "trainer.command=python train.py --short {checkpoints}",
        "--set",
        "smoke.timeout_s=9",
    )
    inside.ok("run", "here.yaml", *given, "--save", "saved.yaml")
    (loaded,) = load_configs([inside.here / "saved.yaml"])
    specs = [subject.spec for _, subject in loaded.judged if subject.spec is not None]
    assert [spec.environment for spec in specs] == [{"BATCH": "8"}, {"BATCH": "8", "LR": "1"}]
    assert {spec.trainer.command for spec in specs} == {"python train.py --short {checkpoints}"}
    assert specs[1].smoke is not None
    assert (specs[1].smoke.command, specs[1].smoke.timeout_s) == ("a", 9)


def test_a_file_that_only_a_variant_names_and_no_machine_would_get_is_found_before_the_launch(
    inside: Inside,
) -> None:
    inside.write("sub/beside.py", "")
    inside.write(
        "sub/here.yaml",
        HERE.replace("{count: 0}", "{count: 0, set: {trainer.command: 'beside.py {checkpoints}'}}"),
    )
    done = inside.run("run", "sub/here.yaml", "--dry-run")
    assert done.returncode == 1
    assert "beside.py is in sub, but not in the working tree" in done.stdout


def test_a_review_names_the_variant_of_each_machine_and_estimates_that_of_the_best_one(
    inside: Inside,
) -> None:
    path = inside.write("right.yaml", CONFIG)
    (loaded,) = load_configs([path])
    assert loaded.subject is not None
    assert loaded.subject.spec is not None
    large = Offer("prime", "a", 4.0, spot=False, gpu="H100_80GB", gpu_count=2, gpu_gb=80, disk_gib=100)
    small = Offer("prime", "b", 0.5, spot=False, gpu="RTX4090_24GB", gpu_count=1, gpu_gb=24, disk_gib=100)
    offers = PricedOffers(run_costs([large, small], loaded.subject.spec.hardware, Market()))
    found = review(loaded, offers, before={}, after={})
    assert found.variant == "variant 2 (1 GPU of 24 GB or more)"
    assert found.cost is not None
    assert [machine.name for machine in found.cost.priced] == [
        "1x RTX4090_24GB on-demand, variant 2 (1 GPU of 24 GB or more)",
        "2x H100_80GB on-demand, variant 1 (2 GPUs of 80 GB or more)",
    ]


def test_memory_has_a_row_for_each_variant_and_fails_if_one_does_not_fit(inside: Inside) -> None:
    inside.write("sizes.yaml", CONFIG)
    done = inside.run("memory", "sizes.yaml", "--model", "Qwen/Qwen3-1.7B", "--bf16", COLUMNS="120")
    rows = [line for line in done.stdout.splitlines() if line.startswith("variant ")]
    assert [row.split("  ")[0] for row in rows[1:]] == [
        "variant 1 (2 GPUs of 80 GB or more)",
        "variant 2 (1 GPU of 24 GB or more)",
    ]
    assert rows[1].split()[-2:] == ["H100_80GB:", "yes"]
    assert rows[2].split()[-4:] == ["RTX4090_24GB:", "unlikely,", "H100_80GB:", "yes"]
    assert "In detail, variant 1 (2 GPUs of 80 GB or more):" in done.stdout
    assert done.returncode == 1
    found = json.loads(
        inside.run("memory", "sizes.yaml", "--model", "Qwen/Qwen3-1.7B", "--bf16", "--json").stdout
    )
    assert (found["variant"], found["fits"]) == ("variant 1 (2 GPUs of 80 GB or more)", False)
    (other,) = found["other_variants"]
    assert (other["variant"], other["trainer"]["gpus"], other["fits"]) == (
        "variant 2 (1 GPU of 24 GB or more)",
        1,
        False,
    )


def test_cost_has_a_row_for_each_variant(inside: Inside) -> None:
    inside.write("sizes.yaml", CONFIG)
    found = json.loads(inside.ok("cost", "sizes.yaml", "--usd-per-hour", "2", "--step-s", "36", "--json"))
    assert sorted((one["machine"], one["gpu_count"]) for one in found["machines"]) == [
        ("1x RTX4090_24GB spot, variant 2 (1 GPU of 24 GB or more)", 1),
        ("2x H100_80GB spot, variant 1 (2 GPUs of 80 GB or more)", 2),
    ]
