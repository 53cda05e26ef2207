"""The account at Lambda Cloud that the tests of this provider use."""

from collections.abc import Iterator

import pytest

from tests.fakes.lambda_cloud import FakeLambdaCloud


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeLambdaCloud]:
    with FakeLambdaCloud() as fake:
        yield fake
        assert fake.violations == []
