"""Every secret, searched for in every output: in normal operation, and while all services that the functions
call fail and repeat the request, as bad servers do.
"""

import json
import logging
import sys
from pathlib import Path

import pytest

from prime_lambdas.settings import Settings
from prime_lambdas.watcher import WatcherOfStack
from prime_train.runs.wire import STORE_PATH
from tests import builders as b
from tests.fakes.faulty_proxy import Fault, FaultyProxy
from tests.fakes.http import ALWAYS, LoseResponse, Response
from tests.lambdas.alone import KEY, SECRETS, Alone, alone, by_event, event
from tests.lambdas.deployed import STACK, Deployed, prime_train
from tests.webhook.attacked import two_runs
from tests.webhook.attacks import MINE, Keys
from tests.webhook.calls import commit, heartbeat
from tests.webhook.leaks import keys_of, leaks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="functions run on Linux"),
    # A function's connections end with its process.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

NOW_S = b.T0_S + b.ATTEMPT_S + 500
HIDDEN = {
    **SECRETS,
    **keys_of(bytes.fromhex(KEY)),
    "AWS's own": "key-of-the-function",
    "its token": "token-of-the-function",
}
OWN = {"AWS_SECRET_ACCESS_KEY": HIDDEN["AWS's own"], "AWS_SESSION_TOKEN": HIDDEN["its token"]}


def faults(
    output: str, *again: str, statuses: tuple[int, ...] = (400, 401, 403, 404, 409, 413, 429, 500, 503)
) -> dict[str, Fault]:
    """Return failures of a server that repeats the request: Amazon's give the reason in one line, and the
    request in the next ones.
    """
    body = json.dumps(
        {"message": output + "".join(again), "Message": {"all": again}, "__type": "com.amazon#Refused"}
    ).encode()
    return {
        **{f"says {status}": Response(status, body) for status in statuses},
        "is not understood": Response(200, b"<" + body),
    }


@pytest.fixture(scope="module")
def lone(here: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    made = alone(here.cloud, tmp_path_factory.mktemp("failing"))
    two_runs(made.store)
    return made


@pytest.mark.parametrize("secret", [False, True], ids=["the table", "the secret and the table"])
def test_a_webhook_whose_services_fail_tells_no_secret(
    secret: bool, lone: Alone, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    keys = Keys(bytes.fromhex(KEY), NOW_S)
    requested = [
        keys.mine.sent("POST", f"{MINE}/heartbeat", heartbeat(8).model_dump_json().encode()),
        keys.mine.sent("POST", f"{MINE}/commit", commit(10).model_dump_json().encode()),
        keys.mine.sent("GET", f"{MINE}/bootstrap"),
        keys.mine.sent("POST", f"{MINE}/keys"),
        *(
            keys.operator.sent("POST", STORE_PATH + name, b"[]")
            for name in ("list_runs", "lease_statuses", "watch")
        ),
    ]
    for what, fault in (faults("refused\n", *HIDDEN.values()) | {"breaks off": LoseResponse()}).items():
        with FaultyProxy(lone.cloud.url) as between:
            between.fail(fault, first=1 if secret else 2, times=ALWAYS)
            webhook = lone.webhook(NOW_S, AWS_ENDPOINT_URL=between.url, **OWN)
            answers = [by_event(webhook, event(sent, decoded=True)) for sent in requested]
        assert {answer.status for answer in answers} == {503}, (what, answers)
        assert not leaks(str(answers) + repr(webhook) + caplog.text, HIDDEN), what
    assert "Traceback" not in caplog.text


def test_what_a_failing_provider_and_bucket_repeat_is_neither_logged_nor_kept(
    lone: Alone, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    # of botocore's own: below that it shows what it signs, and no function asks it to
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.INFO, "prime_train")
    of_provider = faults("wrong key ", SECRETS["PRIME_API_KEY"], statuses=(401, 500))
    of_bucket = faults("wrong keys ", *OWN.values(), statuses=(401, 500))
    for what in of_provider:
        with FaultyProxy(lone.cloud.url) as provider, FaultyProxy(lone.cloud.url) as bucket:
            provider.fail(of_provider[what], times=ALWAYS)
            bucket.fail(of_bucket[what], times=ALWAYS)
            places = {
                "PRIME_API_BASE_URL": provider.url,
                "AWS_ENDPOINT_URL_S3": bucket.url,
                "PRIME_TRAIN_PROVIDER": "prime",
            }
            env = {**lone.env("Watcher"), **OWN, **places, "PRIME_TRAIN_URL": "http://127.0.0.1:9"}
            tally = WatcherOfStack(Settings.of(env), tmp_path / "home").look(0, lambda: 900.0)
            assert provider.exchanges()
        assert tally.errors, what
        assert not leaks(caplog.text + str(lone.items()) + str(tally), HIDDEN), what
    assert "Traceback" not in caplog.text


def test_nothing_that_deploying_says_or_keeps_holds_a_secret(here: Deployed, tmp_path: Path) -> None:
    formation, functions, home = (
        here.cloud.client("cloudformation"),
        here.cloud.client("lambda"),
        Path(here.env["PRIME_TRAIN_HOME"]),
    )
    more = {
        "ODD_TOKEN": 'a "quoted" $secret\nof two lines/&=',
        "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "key/of+pods==of-nobody",
    }
    hidden = {
        **more,
        "HF_TOKEN": "hf-secret-value",
        "PRIME_API_KEY": here.fake.api_key,
        **keys_of(bytes.fromhex(here.key)),
    }
    given = [word for name in more for word in ("--secret", name)]
    ways = [
        ("deploy", "--stack", "planned", "--dry-run", "--code", str(here.code), *given),
        ("deploy", "--stack", STACK, "--yes", "--code", str(tmp_path / "there-is-none.zip"), *given),
        ("doctor", "--stack", STACK),
    ]
    reported = [prime_train({**here.env, **more}, *words) for words in ways]
    stack = {"StackName": STACK}
    kept = [
        formation.describe_stacks(**stack),
        formation.describe_stack_events(**stack),
        formation.get_template(**stack),
        [
            functions.get_function_configuration(FunctionName=here.outputs[name])
            for name in ("Webhook", "Watcher")
        ],
        [path.read_bytes() for path in home.rglob("*") if path.is_file()],
    ]
    words = "\n".join(
        [here.first_words, *(done.stdout + done.stderr for done in reported), *map(str, kept), here.logs()]
    )
    assert not leaks(words, hidden)
    assert "Traceback" not in "".join(done.stdout + done.stderr for done in reported)
