"""Which CUDA an installed torch needs, and whether the driver supports it."""

import pytest

from prime_train.trainers.cuda_versions import cuda_major, driver_warning


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"torch": "2.11.0+cu130"}, 13),
        ({"torch": "2.7.1+cu118", "nvidia-cuda-runtime-cu12": "12.8.90"}, 11),
        ({"torch": "2.8.0", "nvidia-cuda-runtime-cu12": "12.8.90"}, 12),
        ({"torch": "2.11.0", "nvidia-cuda-runtime": "13.0.96"}, 13),
        ({"torch": "2.11.0", "nvidia-cuda-runtime": "13.0.96", "nvidia-cuda-runtime-cu12": "12.8.90"}, None),
        ({"torch": "2.11.0+cpu", "nvidia-cuda-runtime": "13.0.96"}, None),
        ({"torch": "2.11.0"}, None),
        ({"nvidia-cuda-runtime": "13.0.96"}, None),
        ({}, None),
    ],
)
def test_the_cuda_of_a_torch_is_in_its_version_or_that_of_its_runtime(
    installed: dict[str, str], expected: int | None
) -> None:
    assert cuda_major(installed) == expected


@pytest.mark.parametrize(
    ("torch", "driver", "warns"),
    [
        ("2.11.0+cu130", (12, 8), True),
        ("2.11.0+cu130", (13, 0), False),
        ("2.8.0+cu128", (12, 2), False),
        ("2.7.0+cu118", (13, 0), False),
        ("2.8.0+cu128", (11, 8), True),
        ("2.11.0+cu130", (), False),
    ],
)
def test_a_driver_supports_its_own_major_version_and_older_ones(
    torch: str, driver: tuple[int, ...], warns: bool
) -> None:
    assert bool(driver_warning({"torch": torch}, driver)) == warns


def test_the_warning_names_the_driver_that_is_needed_and_what_to_do() -> None:
    text = driver_warning({"torch": "2.11.0+cu130"}, (12, 8))
    assert (
        "needs a driver 580 or newer; this machine's driver supports CUDA 12.8: install a wheel for CUDA 12 "
        "in `setup`" in text
    )
