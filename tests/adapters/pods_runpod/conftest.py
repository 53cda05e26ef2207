"""The account at RunPod that the tests of this provider use."""

from collections.abc import Iterator

import pytest

from tests.fakes.runpod import FakeRunPod


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeRunPod]:
    with FakeRunPod() as fake:
        yield fake
        assert fake.violations == []
