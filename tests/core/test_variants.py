"""Variants of a config: which one a machine gets, and what of the config it changes."""

from typing import Any

import pytest
from pydantic import ValidationError

from prime_train.market.ranking import rank
from prime_train.runs.offer import Offer, fits, in_force, variant_of, variant_title
from prime_train.spec.spec import RunSpec
from tests import builders as b

KINDS = ["RTX4090_24GB", "A100_80GB", "H100_80GB"]
VARIANTS: list[dict[str, Any]] = [
    {
        "count": 2,
        "gpu_gb_min": 80,
        "set": {"trainer.workers": 2, "trainer.command": "train.py --batch 32", "environment.BATCH": "32"},
    },
    {"count": 1, "gpu_gb_min": 80, "set": {"trainer.command": "train.py --batch 16"}},
    {"count": 1, "gpu_gb_min": 24},
]


def spec(*variants: dict[str, Any], **changes: Any) -> RunSpec:
    trainer = {"kind": "torchrun", "command": "train.py --batch 4"}
    return b.spec(
        **(
            {"trainer": trainer, "hardware": {"gpus": KINDS, "variants": list(variants or VARIANTS)}}
            | changes
        )
    )


def offered(gpu: str, count: int, *, gb: int = 0, usd_per_hour: float = 2.0) -> Offer:
    return Offer(
        "prime", f"{count}x{gpu}", usd_per_hour, spot=False, gpu=gpu, gpu_count=count, gpu_gb=gb, disk_gib=100
    )


@pytest.mark.parametrize(
    ("offer", "number", "command", "workers"),
    [
        (offered("H100_80GB", 2, gb=80), 0, "train.py --batch 32", 2),
        (offered("A100_80GB", 1, gb=80), 1, "train.py --batch 16", 1),
        (offered("A100_80GB", 1), 1, "train.py --batch 16", 1),
        (offered("RTX4090_24GB", 1, gb=24), 2, "train.py --batch 4", 1),
    ],
    ids=["two large", "one large", "memory in the name alone", "one small"],
)
def test_a_machine_gets_the_first_variant_that_it_fits_as_a_config_without_variants(
    offer: Offer, number: int, command: str, workers: int
) -> None:
    wanted = spec()
    assert fits(offer, wanted.hardware) is None
    assert variant_of(offer, wanted.hardware) == number
    got = in_force(wanted, offer)
    assert (got.trainer.command, got.trainer.workers) == (command, workers)
    assert (got.hardware.count, got.hardware.gpus, got.hardware.variants) == (
        offer.gpu_count,
        (offer.gpu,),
        (),
    )
    assert got.environment == ({"BATCH": "32"} if number == 0 else {})
    assert in_force(got, offer) == got
    unchanged = {"name", "budget", "health", "outputs", "checkpoints"}
    assert got.model_dump(include=unchanged) == wanted.model_dump(include=unchanged)


def test_a_machine_that_fits_no_variant_is_not_rented_and_the_reason_names_what_is_sought() -> None:
    small, many = offered("RTX4090_24GB", 2, gb=24, usd_per_hour=0.1), offered("H100_80GB", 8, gb=80)
    ranking = rank([small, many, offered("A100_80GB", 1, gb=80)], spec().hardware)
    assert [offer.offer_id for offer in ranking.best] == ["1xA100_80GB"]
    sought = "hardware.variants has 2 GPUs of 80 GB or more, 1 GPU of 80 GB or more, 1 GPU of 24 GB or more"
    assert [row.why for row in ranking.left_out] == [
        f"has 2 GPUs of 24 GB, but {sought}",
        f"has 8 GPUs of 80 GB, but {sought}",
    ]
    assert variant_title(small, spec().hardware) == ""
    with pytest.raises(ValueError, match="fits no variant"):
        in_force(spec(), small)


def test_a_variant_for_machines_without_a_gpu_names_none() -> None:
    wanted = b.spec(
        hardware={
            "variants": [{"count": 1, "gpu_gb_min": 24}, {"count": 0, "set": {"smoke.command": "true"}}]
        }
    )
    cpu = b.offer()
    assert variant_title(cpu, wanted.hardware) == "variant 2 (no GPU)"
    got = in_force(wanted, cpu)
    assert got.hardware.gpus == ()
    assert got.smoke is not None
    assert got.smoke.command == "true"


def test_what_a_kind_fills_in_from_the_command_is_filled_in_anew() -> None:
    axolotl = {"count": 2, "set": {"trainer.command": "axolotl train {checkpoints}/../c.yml"}}
    wanted = b.spec(
        trainer={"kind": "hf", "command": "train.py --output_dir {checkpoints}"},
        hardware={
            "gpus": KINDS,
            "variants": [
                axolotl,
                {"count": 1},
                {"count": 4, "set": {"trainer.resume": "--from {checkpoint}"}},
            ],
        },
    )
    resumes = [wanted.variant(number).trainer.resume for number in range(3)]
    assert resumes == [
        "--resume-from-checkpoint {checkpoint}",
        "--resume_from_checkpoint {checkpoint}",
        "--from {checkpoint}",
    ]


@pytest.mark.parametrize(
    ("variants", "kind", "why"),
    [
        ([{"count": 1, "set": {"budget.usd": 1}}], "torchrun", "'budget.usd' cannot differ between variants"),
        ([{"count": 1, "set": {"trainer.steps": 1}}], "torchrun", "'trainer.steps' cannot differ"),
        (
            [{"count": 1, "set": {"environment.WANDB_ENTITY": "a"}}],
            "torchrun",
            "'environment.WANDB_ENTITY' cannot differ",
        ),
        ([{"count": 3}], "torchrun", "3 GPUs do not fit one node"),
        (
            [{"count": 1, "gpu_gb_min": 24}, {"count": 1, "gpu_gb_min": 80}],
            "torchrun",
            "variant 2 .* is never used, because variant 1",
        ),
        (
            [{"count": 1, "set": {"trainer.workers": "many"}}],
            "torchrun",
            "with variant 1, trainer.workers: Input should be a valid",
        ),
        (
            [{"count": 1, "set": {"trainer.workers": "2"}}],
            "torchrun",
            "with variant 1, trainer.workers: Input should be a valid integer",
        ),
        (
            [{"count": 1, "set": {"trainer.workers": True}}],
            "torchrun",
            "with variant 1, trainer.workers: Input should be a valid integer",
        ),
        (
            [{"count": 1, "set": {"smoke": "true", "smoke.steps": 3}}],
            "torchrun",
            "smoke and smoke.steps set the same",
        ),
        (
            [{"count": 1, "set": {"smoke.steps": 3, "smoke": {"command": "a"}}}],
            "torchrun",
            "smoke and smoke.steps set the same",
        ),
        (
            [{"count": 1, "gpu_gb_min": 200}, {"count": 1}],
            "torchrun",
            "variant 1 .* is never used, because of gpus none has more than 80",
        ),
        (
            [{"count": 0}, {"count": 1}],
            "torchrun",
            "variant 1 .* is never used, because gpus names kinds of GPU",
        ),
        (
            [{"count": 0, "gpu_gb_min": 24}, {"count": 1}],
            "torchrun",
            "gpu_gb_min: a machine with count 0 has no GPU",
        ),
        (
            [{"count": 1}, {"count": 2, "set": {"trainer.command": "x {y}"}}],
            "torchrun",
            "with variant 2, trainer: command: unknown place",
        ),
        (
            [{"count": 1}, {"count": 2}],
            "areal",
            "a checkpoint of kind areal can only be restored on as many GPUs as saved it",
        ),
        ([{"count": 1}, {"count": 2}], "verl", "kind verl can only be restored on as many GPUs"),
    ],
)
def test_variants_that_make_no_config_are_refused(
    variants: list[dict[str, Any]], kind: str, why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        spec(*variants, trainer={"kind": kind, "command": "train.py trainer.save_freq=1"})


def test_variants_of_one_count_are_allowed_for_every_kind() -> None:
    spec(
        {"count": 2, "gpu_gb_min": 80},
        {"count": 2, "gpu_gb_min": 24},
        trainer={"kind": "verl", "command": "x trainer.save_freq=1"},
    )


def test_a_variant_may_need_more_memory_than_the_names_of_kinds_tell() -> None:
    spec(
        {"count": 1, "gpu_gb_min": 200},
        hardware={"gpus": ["B300", "H100_80GB"], "variants": [{"count": 1, "gpu_gb_min": 200}]},
    )


def test_a_variant_keeps_every_value_of_a_config() -> None:
    changes: dict[str, Any] = {
        "budget": {"usd": 5, "deadline": "2040-01-01T12:00+01:00", "hours": 2.5},
        "verification": [{"path": "a", "size_min": "1 MB"}],
        "health": {"log_rules": [{"pattern": "a(b)?", "cause": "gpu_oom"}]},
        "checkpoints": {"max_disk_gib": "3 GB", "compress": "off"},
        "wandb": {"project": "x"},
        "secrets": ["HF_TOKEN"],
    }
    wanted = spec(**changes)
    plain = spec(hardware={"gpus": KINDS}, **changes)
    assert wanted.variant(2) == plain


def test_a_count_beside_variants_is_refused() -> None:
    with pytest.raises(ValidationError, match="count: each variant has its own; delete this key"):
        b.spec(hardware={"gpus": KINDS, "count": 2, "variants": VARIANTS})


def test_a_config_with_variants_is_the_same_after_it_was_stored() -> None:
    wanted = spec()
    again = RunSpec.model_validate_json(wanted.model_dump_json())
    assert again == wanted
    assert again.variant(0) == wanted.variant(0)
