"""The bucket of a remote control plane: opened with temporary keys that it issues to whoever has its master
key, and to no one else.
"""

import pytest

from prime_train.app.credentials import RENEWED_S, Renewed, borrowed, has_own
from prime_train.buckets.attempt_policy import PolicyScope, assumed
from prime_train.elapsed import Elapsed
from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.wire import PodKeys, operator_key, sign
from prime_train.stores.memory import MemoryStore
from prime_train.stores.remote import RemoteStore
from prime_train.stores.remote_calls import OPENING_GIVES, Opening
from prime_train.webhook.requests import Request
from prime_train.webhook.state import WebhookContext
from tests.buckets import no_bucket
from tests.fakes.http import Response, ScriptedServer
from tests.webhook.calls import handle

MASTER = b"the master key of these tests"
NOW_S = 1_800_000_000
PATH = "/v1/store/opening"


def keys(name: str = "first", valid_s: int = 3600) -> PodKeys:
    return PodKeys(access_key_id=name, secret_access_key="secret", session_token="token", valid_s=valid_s)


def requested(key: str) -> Request:
    signature = sign(key, NOW_S, "POST", PATH, b"[]")
    return Request("POST", PATH, {"x-pt-timestamp": str(NOW_S), "x-pt-signature": signature}, b"[]", NOW_S)


def webhook(lent: list[tuple[str, int]]) -> WebhookContext:
    def issue_credentials(run_id: str, attempt: int, blobs_of: str = "") -> PodKeys:
        lent.append((run_id, attempt))
        return keys()

    return WebhookContext(
        MemoryStore(),
        (MASTER,),
        secrets={},
        bucket_url="s3://bucket",
        bucket=no_bucket,
        bucket_keys={"AWS_REGION": "eu-central-1"},
        issue_credentials=issue_credentials,
    )


def test_the_operator_is_lent_keys_of_no_run() -> None:
    lent: list[tuple[str, int]] = []
    answer = handle(webhook(lent), requested(operator_key(MASTER)))
    assert (answer.status, lent) == (200, [("", 0)])
    assert OPENING_GIVES.validate_json(answer.body) == Opening({"AWS_REGION": "eu-central-1"}, keys())


def test_the_operators_keys_may_all_that_the_role_may() -> None:
    output = assumed("arn:aws:iam::1:role/pods", PolicyScope("bucket"), "", 0)
    assert output == {
        "RoleArn": "arn:aws:iam::1:role/pods",
        "RoleSessionName": "pt-operator",
        "DurationSeconds": 3600,
    }


def test_nobody_else_is_lent_any() -> None:
    lent: list[tuple[str, int]] = []
    answer = handle(webhook(lent), requested(operator_key(b"another key")))
    assert (answer.status, lent) == (401, [])


def test_keys_are_kept_while_they_are_good_and_requested_anew_before_they_end() -> None:
    later = iter([Opening({}, keys("second"))])
    kept = Renewed(Opening({}, keys()), lambda: next(later))
    assert {kept().access_key_id for _ in range(3)} == {"first"}
    ending = Renewed(Opening({}, keys(valid_s=int(RENEWED_S) - 1)), lambda: next(later))
    assert {ending().access_key_id for _ in range(3)} == {"second"}


def test_keys_that_ended_while_a_laptop_slept_are_not_used() -> None:
    monotonic, wall = [0.0], [1000.0]
    kept = Renewed(
        Opening({}, keys()),
        lambda: Opening({}, keys("second")),
        Elapsed(lambda: monotonic[0], lambda: wall[0]),
    )
    assert kept().access_key_id == "first"
    monotonic[0], wall[0] = 1.0, 1000.0 + 8 * 3600
    assert kept().access_key_id == "second"


def test_a_control_plane_that_lends_no_more_is_reported() -> None:
    ending = Renewed(Opening({}, keys(valid_s=0)), lambda: Opening({"AWS_ACCESS_KEY_ID": "a key that stays"}))
    with pytest.raises(PermanentError, match="no longer provides keys to its bucket"):
        ending()


def test_keys_are_used_to_their_end_where_no_others_can_be_had() -> None:
    requested: list[str] = []

    def ask() -> Opening:
        requested.append("keys")
        raise TemporaryError("got no answer")

    ending = Renewed(Opening({}, keys(valid_s=60)), ask)
    assert {ending().access_key_id for _ in range(3)} == {"first"}
    assert requested == ["keys"]
    with pytest.raises(TemporaryError, match="got no answer"):
        Renewed(Opening({}, keys(valid_s=0)), ask)()


def test_an_older_control_plane_leaves_it_to_the_keys_that_aws_tools_find() -> None:
    with ScriptedServer(Response(404, b'{"error": "the store has no such method"}')) as older:
        plane = RemoteStore(older.url, MASTER)
        assert plane.opening() == Opening({})
        borrowed(
            "s3://bucket",
            {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "found", "AWS_REGION": "eu-central-1"},
            plane,
        )


@pytest.mark.parametrize(
    "static", [{}, {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "static"}], ids=["none", "static"]
)
def test_where_the_role_cannot_be_taken_keys_that_do_not_end_have_to_do(static: dict[str, str]) -> None:
    def refused(run_id: str, attempt: int, blobs_of: str = "") -> PodKeys:
        raise PermanentError("sts answered with 403")

    answer = handle(
        WebhookContext(
            MemoryStore(),
            (MASTER,),
            secrets={},
            bucket_url="s3://b",
            bucket=no_bucket,
            bucket_keys=static,
            issue_credentials=refused,
        ),
        requested(operator_key(MASTER)),
    )
    assert answer.status == (200 if static else 503)
    assert not static or OPENING_GIVES.validate_json(answer.body) == Opening(static)


def test_keys_that_are_named_here_are_meant() -> None:
    assert not has_own({"AWS_REGION": "eu-central-1", "PRIME_TRAIN_STORE": "https://train.example.org"})
    assert has_own({"AWS_PROFILE": "training"})
    assert has_own({"R2_ACCESS_KEY_ID": "id"})


def test_keys_are_in_no_text_of_an_opening() -> None:
    assert "secret" not in repr(Opening({"AWS_SECRET_ACCESS_KEY": "secret"}, keys()))
