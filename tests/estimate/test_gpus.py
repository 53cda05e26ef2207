"""The data of GPUs, and their names."""

import pytest

from prime_train.estimate.gpus import GPUS, PCIE, WITHOUT_BF16, facts, family, has_bf16, named_gb, names


@pytest.mark.parametrize(
    ("kind", "socket", "tflops"),
    [
        ("H100_80GB", "SXM5", 989),
        ("H100_80GB", "PCIe", 756),
        ("A100_40GB", "PCIe", 312),
        ("RTX_PRO_6000B_96GB", "PCIe", 500),
        ("GB200", "", 2500),
    ],
)
def test_a_kind_has_the_rate_of_its_data_sheet(kind: str, socket: str, tflops: float) -> None:
    found = facts(kind, socket)
    assert found is not None
    assert found.tflops == tflops


def test_only_what_is_sure_is_linked() -> None:
    linked = facts("A100_80GB", "SXM4")
    card = facts("A100_80GB", "PCIe")
    assert linked is not None
    assert card is not None
    assert (linked.linked, card.linked) == (True, False)


def test_a_kind_that_is_not_known_is_reported_as_such() -> None:
    assert facts("H1000_80GB") is None
    assert has_bf16("H1000_80GB")
    assert not has_bf16("V100_32GB")


def test_the_tables_agree() -> None:
    assert set(PCIE) <= set(GPUS)
    assert not WITHOUT_BF16 & set(GPUS)
    assert all(gpu.tflops > 0 and gpu.gb_per_s > 0 for gpu in (*GPUS.values(), *PCIE.values()))


def test_names() -> None:
    assert names("H100_80GB", "SXM5") == {
        "H100",
        "H10080",
        "H10080GB",
        "H100SXM5",
        "H10080SXM5",
        "H10080GBSXM5",
    }
    assert (family("RTX4090_24GB"), named_gb("RTX4090_24GB"), named_gb("GB200")) == ("RTX4090", 24, 0)
