"""The control plane as deployed, once for all tests that leave it as it is."""

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
