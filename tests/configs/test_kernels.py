"""Packages whose installation compiles CUDA kernels: what is missing for it is found before a machine is
rented.
"""

from pathlib import Path

import pytest

from prime_train.checks.engine import findings_with_ignored
from prime_train.checks.kernels import RULES
from prime_train.configs.loader import load_configs
from prime_train.estimate import gpus
from prime_train.spec.finding import Finding
from prime_train.trainers.conventions import kernels

DIGEST = "@sha256:" + "a" * 64
CONFIG = """\
name: pilot
trainer:
  command: python train.py
hardware:
  provider: runpod
  gpus: [A100_80GB, H100_80GB]
  image: {image}
environment: {environment}
setup:
  - {setup}
budget:
  usd: 10
"""


def found(
    folder: Path,
    setup: str,
    *,
    image: str = f"docker.io/library/python:3.12{DIGEST}",
    environment: str = "{}",
) -> list[Finding]:
    file = folder / "run.yaml"
    file.write_text(CONFIG.format(image=image, environment=environment, setup=setup))
    (loaded,) = [loaded for loaded in load_configs([file]) if loaded.file == str(file)]
    assert loaded.subject is not None, loaded.findings
    return list(findings_with_ignored(loaded.subject, rules=RULES))


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    "setup",
    [
        "pip install --no-build-isolation torch-scatter",
        "python3 -m pip install torch==2.9.1 && python3 -m pip install --no-build-isolation adam-atan2",
        "uv pip install --no-build-isolation torch_sparse==0.6.18",
        "pip install -v --no-build-isolation git+https://github.com/NVIDIA/apex.git",
        "pip install --no-build-isolation 'git+https://github.com/facebookresearch/pytorch3d.git@v0.7.9'",
        "pip install --no-build-isolation "
        "git+https://github.com/facebookresearch/xformers.git@main#egg=xformers",
        "pip install --no-build-isolation git+https://github.com/Dao-AILab/flash-attention.git",
        "DS_BUILD_OPS=1 pip install deepspeed",
    ],
)
def test_a_package_that_compiles_kernels_on_an_image_without_a_compiler_is_an_error_there(
    tmp_path: Path, setup: str
) -> None:
    (finding,) = found(tmp_path, setup)
    assert (finding.code, finding.line, finding.severity) == ("TR462", 7, "error")
    assert "has no nvcc" in finding.message
    assert "devel" in finding.fix


@pytest.mark.parametrize(
    "name", ["flash-attn", "flash_attn==2.8.3", "causal-conv1d>=1.4", "mamba-ssm[causal-conv1d]"]
)
def test_a_package_that_looks_for_its_makers_wheels_first_is_a_warning(tmp_path: Path, name: str) -> None:
    (finding,) = found(tmp_path, f"pip install --no-build-isolation '{name}'")
    assert (finding.code, finding.severity) == ("TR463", "warning")


@pytest.mark.parametrize(
    ("setup", "image"),
    [
        (
            "pip install --no-build-isolation torch-scatter",
            f"docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel{DIGEST}",
        ),
        ("pip install --no-build-isolation torch-scatter", f"nvcr.io/nvidia/pytorch:25.09-py3{DIGEST}"),
        ("pip install --no-build-isolation torch-scatter", "template:abc"),
        (
            "apt-get install -y nvidia-cuda-toolkit && pip install --no-build-isolation torch-scatter",
            f"docker.io/library/ubuntu:24.04{DIGEST}",
        ),
        (
            "pip install torch-scatter -f https://data.pyg.org/whl/torch-2.8.0+cu128.html",
            f"docker.io/library/python:3.12{DIGEST}",
        ),
        (
            "pip install https://example.org/flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl",
            f"docker.io/library/python:3.12{DIGEST}",
        ),
        ("pip install xformers deepspeed torch torch-scattering", f"docker.io/library/python:3.12{DIGEST}"),
        ("echo pip install flash-attn-like things", f"docker.io/library/python:3.12{DIGEST}"),
    ],
)
def test_a_compiler_a_wheel_and_an_image_of_which_nothing_is_known_are_left_alone(
    tmp_path: Path, setup: str, image: str
) -> None:
    assert found(tmp_path, setup, image=image) == []


@pytest.mark.parametrize(
    "tag",
    [
        "nvidia/cuda:12.8.1-runtime-ubuntu24.04",
        "nvidia/cuda:12.8.1-base-ubuntu24.04",
        "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
    ],
)
def test_images_to_run_in_have_no_compiler(tmp_path: Path, tag: str) -> None:
    assert codes(
        found(tmp_path, "pip install --no-build-isolation torch-cluster", image=f"docker.io/{tag}{DIGEST}")
    ) == ["TR462"]


def test_what_the_image_is_built_from_counts_where_a_template_hides_it(tmp_path: Path) -> None:
    here = found(
        tmp_path,
        "pip install --no-build-isolation torch-cluster\nimage: {packages: [git]}",
        image="template:abc",
    )
    assert codes(here) == ["TR462"]
    brought = "pip install --no-build-isolation torch-cluster\nimage: {packages: [nvidia-cuda-toolkit]}"
    assert found(tmp_path, brought, image="template:abc") == []


def test_a_build_without_the_installed_torch_is_told_what_to_write(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "pip install flash-attn", image="template:abc")
    assert (finding.code, finding.line) == ("TR464", 10)
    assert (
        "pip install 'setuptools<82' wheel packaging ninja && pip install --no-build-isolation flash-attn"
        in finding.fix
    )


@pytest.mark.parametrize(
    ("listed", "is_right"),
    [
        ("8.0;9.0", True),
        ("8.0+PTX", True),
        ("8.0 9.0a", True),
        ("7.0, 7.5+PTX", True),
        ("8.0", False),
        ("9.0", False),
        ("8.6;9.0", False),
        ("8.0;9.0a;10.0", True),
        ("8.0;10.0", False),
        ("Ampere;Hopper", True),
        ("$ARCHS", True),
    ],
)
def test_kernels_must_be_compiled_for_each_kind_that_may_be_rented(
    tmp_path: Path, listed: str, is_right: bool
) -> None:
    here = found(tmp_path, "echo", environment=f'{{TORCH_CUDA_ARCH_LIST: "{listed}"}}')
    assert codes(here) == ([] if is_right else ["TR465"])
    assert all(finding.fix == 'write "8.0;9.0"' for finding in here)


def test_every_kind_for_rent_has_its_capability() -> None:
    rented = {gpus.plain(gpus.family(kind)) for kind in gpus.RENTED} - {"CPUNODE"}
    assert rented - set(kernels.CAPABILITIES) == set()


def test_code_runs_on_newer_gpus_of_its_generation_and_ptx_on_all_newer_ones() -> None:
    assert kernels.covers("8.0", (8, 6)) is True
    assert kernels.covers("8.6", (8, 0)) is False
    assert kernels.covers("9.0a", (9, 0)) is True
    assert kernels.covers("10.0a", (10, 3)) is False
    assert kernels.covers("10.0f", (10, 3)) is True
    assert kernels.covers("9.0+PTX", (12, 0)) is True
    assert kernels.covers("12.0+PTX", (9, 0)) is False
