"""Keys to the bucket, issued by the webhook to the current attempt only."""

import json
from dataclasses import dataclass, field, replace

import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.runs.run import Ancestor, Lineage
from prime_train.runs.wire import Bootstrap, PodKeys, Refusal
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.buckets import no_bucket
from tests.webhook.calls import ATTEMPT, MASTER, NOW_S, SECRETS, ask, handle, held, stored, webhook


@dataclass
class CredentialIssuer:
    """Issues keys for the requested attempt, unless it cannot."""

    error: ExternalError | None = None
    requested: list[tuple[str, int, str]] = field(default_factory=list)

    def __call__(self, run_id: str, attempt: int, blobs_of: str = "") -> PodKeys:
        self.requested.append((run_id, attempt, blobs_of))
        if self.error is not None:
            raise self.error
        number = len(self.requested)
        return PodKeys(
            access_key_id=f"id-{number}",
            secret_access_key=f"secret-{number}",
            session_token=f"t-{number}",
            valid_s=3600,
        )


def lending(lender: CredentialIssuer, **lease: object) -> WebhookContext:
    store = MemoryStore()
    stored(store, held(**lease))
    where = {"AWS_REGION": "eu-central-1"}
    return WebhookContext(
        store,
        (MASTER,),
        secrets=SECRETS,
        bucket_url="s3://training",
        bucket=no_bucket,
        bucket_keys=where,
        issue_credentials=lender,
    )


def test_the_job_comes_with_keys_and_new_ones_come_when_requested() -> None:
    lender = CredentialIssuer()
    here = lending(lender)
    job = Bootstrap.model_validate_json(handle(here, ask("bootstrap")).body)
    assert job.keys is not None
    assert (job.keys.secret_access_key, job.bucket_keys) == ("secret-1", {"AWS_REGION": "eu-central-1"})
    again = handle(here, ask("keys"))
    assert (again.status, PodKeys.model_validate_json(again.body).secret_access_key) == (200, "secret-2")
    assert lender.requested == [(b.RUN_ID, ATTEMPT, "")] * 2
    assert "secret-1" not in repr(job)


def test_the_machines_of_an_ancestor_may_read_the_content_that_it_shares_and_know_where_they_started() -> (
    None
):
    lender, store = CredentialIssuer(), MemoryStore()
    held_now = held()
    lineage = Lineage((Ancestor("first-1", 20), Ancestor("older-1", 10)), "older-1")
    stored(store, replace(held_now, run=replace(held_now.run, lineage=lineage)))
    here = WebhookContext(
        store,
        (MASTER,),
        secrets=SECRETS,
        bucket_url="s3://training",
        bucket=no_bucket,
        issue_credentials=lender,
    )
    job = Bootstrap.model_validate_json(handle(here, ask("bootstrap")).body)
    assert job.started_from == "first-1@20, older-1@10"
    assert handle(here, ask("keys")).status == 200
    assert lender.requested == [(b.RUN_ID, ATTEMPT, "older-1")] * 2


def test_keys_that_do_not_end_are_for_attempts_that_begin_and_those_that_run_go_on_with_lent_ones() -> None:
    here = lending(CredentialIssuer())
    here.bucket_keys |= {"AWS_ACCESS_KEY_ID": "static", "AWS_SECRET_ACCESS_KEY": "static-secret"}
    job = Bootstrap.model_validate_json(handle(here, ask("bootstrap")).body)
    assert (job.keys, job.bucket_keys["AWS_SECRET_ACCESS_KEY"]) == (None, "static-secret")
    again = handle(here, ask("keys"))
    assert (again.status, PodKeys.model_validate_json(again.body).secret_access_key) == (200, "secret-1")


def test_fields_that_say_nothing_are_not_reported_to_agents_from_before_them() -> None:
    store = MemoryStore()
    stored(store)
    message = json.loads(handle(webhook(store), ask("bootstrap")).body)
    assert not {"keys", "origin_url"} & message.keys()
    assert {"bucket_keys", "code_key"} <= message.keys()


def test_where_keys_do_not_end_there_are_no_others() -> None:
    store = MemoryStore()
    stored(store)
    response = handle(webhook(store), ask("keys"))
    assert (response.status, "do not expire" in Refusal.model_validate_json(response.body).error) == (
        404,
        True,
    )


def test_an_attempt_that_was_fenced_gets_none() -> None:
    lender = CredentialIssuer()
    for here, attempt in (
        (lending(lender, open=False), ATTEMPT),
        (lending(lender), ATTEMPT - 1),
        (lending(lender), ATTEMPT + 1),
    ):
        assert handle(here, ask("keys", attempt=attempt)).status == 409
    assert lender.requested == []


@pytest.mark.parametrize(
    "error", [TemporaryError("sts did not answer"), PermanentError("sts answered with 403")], ids=str
)
@pytest.mark.parametrize("verb", ["bootstrap", "keys"])
def test_where_there_are_none_now_the_agent_is_to_ask_again(verb: str, error: ExternalError) -> None:
    response = handle(lending(CredentialIssuer(error)), ask(verb))
    assert (response.status, dict(response.headers)["retry-after"]) == (503, "2")
    refusal = Refusal.model_validate_json(response.body)
    assert (refusal.error, refusal.now_s) == ("keys to the bucket are not available now; retry later", NOW_S)


def test_keys_that_cannot_be_read_are_not_shown() -> None:
    with pytest.raises(ValueError, match="valid_s") as caught:
        PodKeys(access_key_id="id-1", secret_access_key="secret-1" * 100, session_token="t-1", valid_s=-7)
    assert "secret-1" not in str(caught.value)
