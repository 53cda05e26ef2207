"""The webhook's function under attack: by its address as far as the gateway lets an attack through, and by
the events that Amazon's own gateway would make of all requests.
"""

import logging
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from prime_lambdas.webhook import Webhook
from prime_train.runs.wire import Refusal
from prime_train.stores.dynamo.boto_calls import BotoCalls, create_table
from prime_train.stores.dynamo.store import DynamoStore
from tests.fakes.faulty_proxy import FaultyProxy
from tests.lambdas.alone import KEY, SECRETS, Alone, alone, by_event, event
from tests.lambdas.deployed import Deployed
from tests.lambdas.roles import make_roles
from tests.webhook.attacked import all_kept, judge, requested, two_runs
from tests.webhook.attacks import KINDS, Door, Keys, attacks
from tests.webhook.leaks import keys_of, leaks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="functions run on Linux"),
    # A function's connections end with its process.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MASTER = bytes.fromhex(KEY)
NOW_S = 1_800_000_000
HIDDEN = {**SECRETS, **keys_of(MASTER)}


@pytest.fixture(scope="module")
def lone(here: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    made = alone(here.cloud, tmp_path_factory.mktemp("attacked"))
    two_runs(made.store)
    return made


@pytest.fixture(scope="module")
def webhook(lone: Alone) -> Webhook:
    return lone.webhook(NOW_S + 0.5)


@pytest.fixture(scope="module")
def items(lone: Alone) -> list[Any]:
    """Return the table's content before all attacks."""
    return lone.items()


@pytest.mark.parametrize("kind", KINDS)
def test_attacks_by_event_change_nothing_and_are_answered_in_the_one_form(
    kind: str, lone: Alone, webhook: Webhook, items: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for attack in attacks(kind, Door.EVENT, MASTER, NOW_S):
        for decoded in (False, True):
            judge(attack, by_event(webhook, event(attack.sent, decoded=decoded), attack.sent.method), HIDDEN)
    assert lone.items() == items
    assert "Traceback" not in caplog.text
    assert not leaks(caplog.text, HIDDEN)


@pytest.mark.parametrize("kind", KINDS)
def test_attacks_by_address_change_nothing_are_answered_in_the_one_form_and_leave_no_secret_in_a_log(
    kind: str, lone: Alone, here: Deployed, items: list[Any]
) -> None:
    for attack in attacks(kind, Door.ADDRESS, MASTER, int(time.time())):
        judge(attack, requested(lone.url, attack.sent), HIDDEN)
    assert lone.items() == items
    assert "Traceback" not in lone.logs()
    assert not leaks(here.logs(), HIDDEN)


def _but(**changes: object) -> dict[str, Any]:
    """Return a heartbeat's event with some parts changed; None leaves one out."""
    (heartbeat,) = [
        attack
        for attack in attacks("replayed", Door.EVENT, MASTER, NOW_S)
        if attack.name.startswith("a heartbeat again, whose")
    ]
    reported = event(heartbeat.sent, decoded=False) | changes
    return {name: value for name, value in reported.items() if value is not None}


ODD_EVENTS: dict[str, Any] = {
    "nothing": {},
    "a list": [],
    "a schedule's": {
        "source": "aws.scheduler",
        "detail-type": "Scheduled Event",
        "detail": {},
        "resources": [],
    },
    "a queue's": {"Records": [{"body": "{}", "eventSource": "aws:sqs"}]},
    "an older gateway's": {
        "resource": "/{proxy+}",
        "path": "/v1/canary",
        "httpMethod": "POST",
        "headers": {},
        "body": "{}",
    },
    "a balancer's": {
        "requestContext": {"elb": {"targetGroupArn": "x"}},
        "httpMethod": "POST",
        "path": "/",
        "headers": {},
    },
    "a heartbeat's without a path": _but(rawPath=None),
    "a heartbeat's without a context": _but(requestContext=None),
    "a heartbeat's whose context is a text": _but(requestContext="http"),
    "a heartbeat's without a method": _but(requestContext={"http": {}}),
    "a heartbeat's whose headers are a list": _but(headers=[1]),
    "a heartbeat's whose headers are numbers": _but(
        headers={"x-pt-timestamp": 7, "x-pt-signature": {"v1": None}}
    ),
    "a heartbeat's without headers": _but(headers=None),
    "a heartbeat's whose body is an object": _but(body={"run": "tiny-1"}, isBase64Encoded=False),
    "a heartbeat's that is said to be plain and is not": _but(isBase64Encoded=False),
    "a heartbeat's that is said to be base64 and is not": _but(body="{"),
    "a heartbeat's with base64 of another alphabet": _but(body="-_-_"),
    "a heartbeat's with half a character": _but(body="\ud800", isBase64Encoded=False),
    "a heartbeat's whose path is half a character": _but(rawPath="/v1/runs/\ud800/2/heartbeat"),
    "a heartbeat's whose path is a number": _but(rawPath=7),
}


@pytest.mark.parametrize("name", ODD_EVENTS)
def test_an_event_of_another_kind_is_refused_in_the_one_form(
    name: str, lone: Alone, webhook: Webhook, items: list[Any]
) -> None:
    answer = by_event(webhook, ODD_EVENTS[name])
    assert answer.status in (400, 401, 404)
    assert Refusal.model_validate_json(answer.body).now_s == NOW_S
    assert lone.items() == items


def test_a_stranger_makes_nobody_be_queried(lone: Alone) -> None:
    """It does not access the table, and reads the secret once for all of them: a refused request costs as
    much as a function that does nothing.
    """
    with FaultyProxy(lone.cloud.url) as between:
        webhook = lone.webhook(NOW_S, AWS_ENDPOINT_URL=between.url)
        refused = [
            one
            for kind in KINDS
            for one in attacks(kind, Door.EVENT, MASTER, NOW_S)
            if not {200, 409} & set(one.statuses)
        ]
        for attack in refused:
            by_event(webhook, event(attack.sent, decoded=True))
        assert len(between.exchanges()) == 1
    assert len(refused) > 100


def test_what_is_unusual_and_allowed_can_be_read_again(lone: Alone) -> None:
    create_table(lone.dynamodb, f"{lone.name}-odd")
    stack = replace(lone.stack, name=f"{lone.name}-odd", table=f"{lone.name}-odd")
    make_roles(lone.cloud.url, stack)
    webhook = replace(lone, stack=stack).webhook(NOW_S)
    two_runs(DynamoStore(BotoCalls(lone.dynamodb), f"{lone.name}-odd"))
    all_kept(lambda sent: by_event(webhook, event(sent, decoded=True)), Keys(MASTER, NOW_S))
