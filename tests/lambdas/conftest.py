"""The deployed control plane, once for all tests that do not change it."""

import sys
from collections.abc import Iterator

import pytest

from tests.lambdas.deployed import Deployed, deployed


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    if sys.platform != "linux":
        pytest.skip("the fake's machines have Linux")
    with deployed(tmp_path_factory.mktemp("deployed")) as it:
        yield it
