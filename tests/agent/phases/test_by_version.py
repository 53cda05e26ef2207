"""The real agent: variables for the versions of the libraries that the setup has installed."""

from pathlib import Path

from prime_train.spec.spec import RunSpec
from tests.agent.attempts import DEMO, attempt, demo_spec
from tests.fakes.nvml import Driver


def installs(**versions: str) -> str:
    """Return a setup command that installs libraries as far as their metadata goes."""
    made = (
        f"mkdir -p libs/{name}-{version}.dist-info && printf 'Metadata-Version: 2.1\\nName: "
        f"{name}\\nVersion: {version}\\n' > libs/{name}-{version}.dist-info/METADATA"
        for name, version in versions.items()
    )
    return " && ".join(made)


def spec_with(*setup: str, gpus: bool = True, **environment: str) -> RunSpec:
    command = f"env > ../seen.txt; {DEMO} --steps 3 --save-every 3"
    hardware = {"gpus": ["H100"], "count": 2} if gpus else {}
    return demo_spec(
        "",
        trainer={"command": command},
        hardware=hardware,
        setup=list(setup),
        environment={"PYTHONPATH": "libs", **environment},
    )


def seen(disk: Path) -> dict[str, str]:
    lines = (disk / "seen.txt").read_text().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_the_trainer_gets_what_its_libraries_need_and_the_log_says_why(
    tmp_path: Path, driver: Driver
) -> None:
    wanted = spec_with(installs(torch="2.8.0", tokenizers="0.21.0"))
    with attempt(tmp_path, wanted, env=driver.env) as here:
        assert here.wait() == 0
        got = seen(here.disk)
        assert (got["PYTORCH_CUDA_ALLOC_CONF"], got["TOKENIZERS_PARALLELISM"]) == (
            "expandable_segments:True",
            "false",
        )
        log = here.log("setup.log")
        assert (
            "environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True for torch 2.8.0: freed memory"
            in log
        )
        assert "https://github.com/pytorch/pytorch/issues/183387" in log


def test_what_the_config_or_the_machine_sets_is_left_alone_even_if_it_is_empty(
    tmp_path: Path, driver: Driver
) -> None:
    wanted = spec_with(installs(torch="2.8.0", tokenizers="0.21.0"), TOKENIZERS_PARALLELISM="")
    with attempt(tmp_path, wanted, env={**driver.env, "PYTORCH_ALLOC_CONF": "backend:native"}) as here:
        assert here.wait() == 0
        got = seen(here.disk)
        assert (got["TOKENIZERS_PARALLELISM"], got["PYTORCH_ALLOC_CONF"]) == ("", "backend:native")
        assert "PYTORCH_CUDA_ALLOC_CONF" not in got
        assert "environment: " not in here.log("setup.log")


def test_the_python_of_the_working_trees_environment_is_asked_first(tmp_path: Path, driver: Driver) -> None:
    python = (
        "mkdir -p .venv/bin && printf '#!/bin/sh\\necho installed library: torch 2.12.0\\n' > "
        ".venv/bin/python && chmod +x .venv/bin/python"
    )
    with attempt(tmp_path, spec_with(installs(torch="2.8.0"), python), env=driver.env) as here:
        assert here.wait() == 0
        assert seen(here.disk)["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"


def test_libraries_whose_versions_cannot_be_read_do_not_end_the_attempt(
    tmp_path: Path, driver: Driver
) -> None:
    broken = (
        "mkdir -p .venv/bin && printf '#!/bin/sh\\nexit 3\\n' > .venv/bin/python && chmod +x .venv/bin/python"
    )
    with attempt(tmp_path, spec_with(installs(torch="2.8.0"), broken), env=driver.env) as here:
        assert here.wait() == 0
        assert "PYTORCH_CUDA_ALLOC_CONF" not in seen(here.disk)


def test_a_run_without_gpus_gets_none(tmp_path: Path) -> None:
    with attempt(tmp_path, spec_with(installs(torch="2.8.0"), gpus=False)) as here:
        assert here.wait() == 0
        assert "PYTORCH_CUDA_ALLOC_CONF" not in seen(here.disk)


def test_a_driver_that_is_too_old_for_the_installed_torch_is_warned_about_before_training(
    tmp_path: Path, driver: Driver
) -> None:
    driver.says(cuda=12080)
    # What a Python that has this wheel would print.
    python = "printf '#!/bin/sh\\necho installed library: torch 2.11.0+cu130\\n' > .venv/bin/python"
    with attempt(
        tmp_path, spec_with(f"mkdir -p .venv/bin && {python} && chmod +x .venv/bin/python"), env=driver.env
    ) as here:
        assert here.wait() == 0
        warning = (
            "torch 2.11.0+cu130 is built for CUDA 13, which needs a driver 580 or newer; this machine's "
            "driver supports CUDA 12.8"
        )
        assert warning in here.log("agent.log")
