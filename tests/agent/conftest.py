"""What tests of the agent share: a driver for its GPUs."""

from pathlib import Path

import pytest

from tests.fakes.nvml import COMPILER, Driver, build


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("the fake driver is built with a C compiler, on Linux; there is none")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(nvml_library: Path, tmp_path: Path) -> Driver:
    """Two GPUs that work."""
    return Driver(tmp_path, nvml_library)
