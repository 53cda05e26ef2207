"""A fake cluster whose every call its description allows."""

from collections.abc import Iterator

import pytest

from tests.fakes.kubernetes import FakeKubernetes


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeKubernetes]:
    with FakeKubernetes() as fake:
        yield fake
        assert fake.violations == []
