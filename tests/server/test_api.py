"""The webhook follows its own description, whatever is sent: valid or not, signed or not."""

from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis.openapi
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import BaseSchema, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from prime_train.buckets.keys import parse_manifest_key
from prime_train.buckets.port import Content
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.api_description import ROUTES, DescribedRoute
from prime_train.webhook.commits import CommitCheck
from prime_train.webhook.server.serve import Server
from tests import builders as b
from tests.reconcile.ports import DictBucket, Faults
from tests.server.fuzzing import Signed, fit
from tests.waiting import HANG_S
from tests.webhook.attacked import two_runs
from tests.webhook.calls import MASTER, commit, manifest_of, webhook

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
    context = webhook(store)
    context.commits = CommitCheck(EveryManifest)
    with Server(context) as server:
        yield server.url


class EveryManifest(DictBucket):
    """A bucket with the manifest of every step."""

    def __init__(self) -> None:
        super().__init__(Faults())

    def get(self, key: str) -> Content | None:
        place = parse_manifest_key(b.RUN_ID, key)
        made = commit(place[0], attempt=place[1]) if place is not None else None
        return Content(manifest_of(made).model_dump_json().encode(), "") if made is not None else None


@pytest.fixture(scope="module")
def schema(url: str) -> BaseSchema:
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
@pytest.mark.parametrize("way", ["signed and fitting", "signed and unfitting", "unsigned"])
def test_every_answer_is_one_of_those_described(
    way: str, row: DescribedRoute, url: str, schema: BaseSchema
) -> None:
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
