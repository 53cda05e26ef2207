"""The webhook follows its own description, whatever is sent: valid or not, signed or not."""

from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis.openapi
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import BaseSchema, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from prime_train.adapters.store_memory import MemoryStore
from prime_train.control_plane.server.app import ROUTES, Row
from prime_train.control_plane.server.serve import Server
from tests.server.fuzzing import Signed, fit
from tests.waiting import HANG_S
from tests.webhook.attacked import two_runs
from tests.webhook.calls import MASTER, webhook

EXAMPLES = 15
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SETTINGS = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    store = MemoryStore()
    two_runs(store)
    with Server(webhook(store)) as server:
        yield server.url


@pytest.fixture(scope="module")
def schema(url: str) -> BaseSchema:
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
@pytest.mark.parametrize("way", ["signed and fitting", "signed and unfitting", "unsigned"])
def test_every_answer_is_one_of_those_described(way: str, row: Row, url: str, schema: BaseSchema) -> None:
    if way == "signed and unfitting" and not row.signed:
        pytest.skip("there is nothing that could be wrong in it")
    mode = GenerationMode.NEGATIVE if way == "signed and unfitting" else GenerationMode.POSITIVE
    auth = Signed(MASTER) if way.startswith("signed") else None
    seen: Counter[int] = Counter()

    @SETTINGS
    @given(case=schema[row.path][row.method].as_strategy(generation_mode=mode))
    def attack(case: Case) -> None:
        response = fit(case, seen.total()).call(base_url=url, auth=auth, timeout=HANG_S)
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    attack()
    assert {200} <= set(seen) or way != "signed and fitting" or row.static
    assert not {200, 409} & set(seen) or way != "unsigned" or not row.signed
