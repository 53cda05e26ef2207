"""The account at Vast.ai that the tests of this provider use."""

from collections.abc import Iterator

import pytest

from tests.fakes.vast import FakeVast


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeVast]:
    with FakeVast() as fake:
        yield fake
        assert fake.violations == []
