"""A rental API and its fake."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.rental_apis.cases import RENTAL_APIS, Api


@pytest.fixture(params=RENTAL_APIS, name="api")
def _api(request: pytest.FixtureRequest) -> Api:
    return RENTAL_APIS[request.param]


@pytest.fixture(name="fake")
def _fake(api: Api, tmp_path: Path) -> Iterator[Any]:
    with api.fake(tmp_path) as fake:
        yield fake
        assert fake.violations == []
