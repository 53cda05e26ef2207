"""The rights in the template are those that the code uses: what a function or a machine does is allowed, and
nothing else is.

That everything is allowed is also checked wherever functions run in tests (`tests.fakes.iam`), and for all
that a watcher does with its bucket in `tests/reconcile`. Here each role uses all its rights, so that one
which nobody uses any longer is named.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests

from prime_lambdas.secret import read
from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.buckets.keys import (
    METRICS_STREAM,
    blob_key,
    code_key,
    descendant_key,
    evidence_key,
    manifest_key,
    piece_key,
    pin_key,
    results_key,
    run_prefix,
)
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.buckets.temporary_credentials import CredentialIssuer
from prime_train.buckets.upload import upload
from prime_train.errors import PermanentError
from prime_train.runs import change as c
from prime_train.runs.dashboard_token import dashboard_token
from prime_train.runs.launch_ids import launch_id
from prime_train.runs.launch_key import LAUNCH_KEY_HEADER, LaunchKey, launch_secret
from prime_train.runs.run import Ancestor, Change, Distrusted, Lineage, Run, RunState
from prime_train.runs.store import Store
from prime_train.runs.wire import SIGNATURE_HEADER, TIMESTAMP_HEADER, PodKeys, sign
from prime_train.spec.causes import Cause
from prime_train.stores.dynamo.opening import open_dynamo
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.watch.marks import write_marks
from tests import builders as b
from tests.fakes import dynamo
from tests.fakes.iam.ledger import refused_to_functions, used
from tests.fakes.iam.policies import Right, rights
from tests.fakes.s3_servers import REGION, S3Server
from tests.lambdas.roles import Stack, environment, make_roles, statements
from tests.reconcile.ports import Outside
from tests.waiting import HANG_S
from tests.webhook.calls import ask, commit, heartbeat, manifest_of, stored

KEY = "5e" * 32
MASTER = bytes.fromhex(KEY)
BUCKET = "of-rights"
DESCENDANT = "descendant-1"
LAUNCHES = "0123abcd"
NEW = launch_id("tiny", "ab12", "acme/rl")


@pytest.fixture(scope="module")
def stack(ministack: S3Server) -> Iterator[Stack]:
    """Return a stack with its roles, without functions."""
    ministack.create_bucket(BUCKET)
    made = requests.post(
        ministack.url,
        json={
            "Name": "of-rights",
            "SecretString": json.dumps({"PRIME_TRAIN_MASTER_KEY": KEY}),
            "ClientRequestToken": "1" * 32,
        },
        headers={"x-amz-target": "secretsmanager.CreateSecret", "content-type": "application/x-amz-json-1.1"},
        timeout=HANG_S,
    ).json()
    with dynamo.table(ministack) as table:
        stack = Stack("of-rights", table, BUCKET, made["ARN"])
        make_roles(ministack.url, stack)
        yield stack


def unused(server: S3Server, stack: Stack, function: str, *more: Right) -> set[Right]:
    """Return the rights of the template that the function, or "Pod", has not used so far. `more`: what it
    used elsewhere.
    """
    done = {right for role, right in used(server) if role == stack.role(function)} | set(more)
    return rights(statements(stack, function)) - done


def settings(server: S3Server, stack: Stack, function: str) -> Settings:
    return Settings.of(
        {**environment(server.url, stack, function), "PRIME_TRAIN_WATCHER": f"{stack.name}-watcher"}
    )


def store_of(here: Settings, stack: Stack) -> DynamoStore:
    return open_dynamo(f"dynamodb://{stack.table}?region={REGION}", here.environment)


def bucket_of(server: S3Server, stack: Stack) -> Bucket:
    """Return the bucket with the account's own keys."""
    keys = {
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_REGION": server.region,
    }
    return open_bucket(f"s3://{stack.bucket}", {**keys, "AWS_ENDPOINT_URL": server.url})


def use_table(store: Store, run_id: str) -> None:
    """Make a run train, hear its heartbeat, list it, and bring it to rest."""
    there = stored(store, b.record(b.run(RunState.TRAINING, run_id=run_id, attempt=2), seq=7))
    store.heartbeat(heartbeat(8, run=run_id), store.now_s())
    assert store.list_runs()
    there = store.load(there.run.run_id) or there
    over = replace(
        there.run, state=RunState.SUCCEEDED, version=there.run.version + 1, next_check_s=None, cleanup_s=None
    )
    assert store.save(
        Change(
            over,
            replace(there.lease, open=False, version=there.lease.version + 1),
            lease_version=there.lease.version,
        )
    )


def test_the_watcher_uses_every_right_that_it_has_and_no_other(ministack: S3Server, stack: Stack) -> None:
    here = settings(ministack, stack, "Watcher")
    assert read(here)["PRIME_TRAIN_MASTER_KEY"] == KEY
    use_table(store_of(here, stack), "watched-1")
    w = cleaned_up()
    adopted(w)
    w.save_checkpoint(20)
    distrusted = replace(w.run(), distrusted=(Distrusted(20, 1, failed=2),))
    write_marks(w.world.bucket, distrusted)
    write_marks(w.world.bucket, w.run())
    of_bucket = [
        Right(one.action, one.resource.replace(w.judged.name, stack.bucket)) for one in w.judged.used
    ]
    assert unused(ministack, stack, "Watcher", *of_bucket) == set()
    assert not [one for one in refused_to_functions(ministack) if one.startswith(stack.role("Watcher"))]


def cleaned_up() -> Outside:
    """Play a run that ends after a descendant of it, which needs its content no longer."""
    w = Outside().with_identities().trains()
    started = w.save_checkpoint(10).for_descendant(DESCENDANT)
    data = started.model_dump_json().encode()
    record = descendant_key(b.RUN_ID, DESCENDANT, 10)
    # The record of another one was left by a launch that was cut off.
    w.bucket.objects |= {record: data, started.key: data, descendant_key(b.RUN_ID, "cut-off-1", 10): data}
    made = Run(
        DESCENDANT,
        b.spec(),
        created_s=w.now_s,
        resume=started.point,
        lineage=Lineage((Ancestor(b.RUN_ID, 10),), b.RUN_ID),
    )
    assert w.store.create(made)
    w.trains(DESCENDANT, step=12)
    del (
        w.bucket.objects[manifest_key(DESCENDANT, 10, 0)],
        w.bucket.objects[manifest_key(b.RUN_ID, 10, w.run().attempt)],
    )
    for run_id in (b.RUN_ID, DESCENDANT):
        w.after(20).exit(Cause.FINISHED, run_id, step=2000)
        w.settle(run_id)
    w.sweeps(2 * c.CLEANUP_AFTER_S, every_s=c.CLEANUP_AFTER_S // 4)
    assert not {record, blob_key(b.RUN_ID, b.digest(10))} & w.bucket.objects.keys()
    return w


def adopted(w: Outside) -> None:
    """Play that the store is restored from a copy that lacks an attempt."""
    w.add("copied-1")
    w.trains("copied-1")
    restore = w.copied()
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.after(40).settle("copied-1")
    w.after(700).trains("copied-1", step=20)
    restore()
    w.after(60).settle("copied-1")
    assert w.run("copied-1").attempt == 2


def test_the_webhook_uses_every_right_that_it_has_and_no_other(
    ministack: S3Server, stack: Stack, tmp_path: Path
) -> None:
    here, objects = settings(ministack, stack, "Webhook"), bucket_of(ministack, stack)
    store = store_of(here, stack)
    use_table(store, "called-1")
    over = replace(
        b.run(RunState.SUCCEEDED, run_id="over-1", spec=b.spec(success={"loss_below": 3})), next_check_s=None
    )
    assert store.create(over)
    training = b.record(b.run(RunState.TRAINING, run_id="seen-1", attempt=2), seq=7)
    stored(store, training)
    watch = store.watch()
    allowed = {LAUNCHES: LaunchKey("acme/rl", store.now_s())}
    assert store.save_watch(
        replace(watch, version=watch.version + 1, launch_keys=allowed), version=watch.version
    )
    for key, content in {
        commit(10, run="seen-1").key: manifest_of(commit(10, run="seen-1")).model_dump_json().encode(),
        evidence_key("seen-1", 1, "trainer.log"): b"the last words",
        results_key("over-1"): b"{}",
        piece_key("over-1", 1, "", METRICS_STREAM, 1): b"step,time_s,loss\n1,1,3.5\n",
        piece_key("seen-1", 2, "", METRICS_STREAM, 1): b"step,time_s,loss\n1,1,3.5\n",
        piece_key("seen-1", 1, "", "trainer.log", 1): b"the first words",
    }.items():
        objects.put(key, content)
    with closing(Webhook(here)) as webhook:
        answers = [
            requested(
                webhook,
                store,
                "POST",
                "/v1/runs/seen-1/2/heartbeat",
                heartbeat(8, run="seen-1", news=True).model_dump_json(),
            ),
            requested(
                webhook, store, "POST", "/v1/runs/seen-1/2/commit", commit(10, run="seen-1").model_dump_json()
            ),
            requested(webhook, store, "POST", "/v1/runs/seen-1/2/keys", ""),
            requested(webhook, store, "POST", "/v1/store/code_url", json.dumps([NEW, len(b"the code")])),
        ]
        assert [answer["statusCode"] for answer in answers] == [200] * 4, answers
        (tmp_path / "code").write_bytes(b"the code")
        upload(json.loads(answers[3]["body"]), tmp_path / "code")
        for run_id in ("seen-1", "over-1"):
            assert "lacks permission" not in shown(webhook, store, run_id)
    assert objects.get(code_key(NEW)) is not None
    assert unused(ministack, stack, "Webhook") == set()
    assert not [one for one in refused_to_functions(ministack) if one.startswith(stack.role("Webhook"))]


def requested(webhook: Webhook, store: Store, method: str, path: str, body: str) -> dict[str, Any]:
    """Return the function's answer to a request that is signed by the attempt that the path names, or else by
    a launch key.
    """
    at_s, raw = store.now_s(), body.encode()
    if path.startswith("/v1/runs/"):
        headers = dict(ask("", raw, run="seen-1", path=path, method=method, master=MASTER, at_s=at_s).headers)
    else:
        signature = sign(launch_secret(MASTER, LAUNCHES), at_s, method, path, raw)
        headers = {TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: signature, LAUNCH_KEY_HEADER: LAUNCHES}
    http = {"method": method, "path": path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
    context = {"http": http, "domainName": "x.lambda-url.us-east-1.on.aws"}
    return webhook(
        {"version": "2.0", "rawPath": path, "headers": headers, "requestContext": context, "body": body}, None
    )


def shown(webhook: Webhook, store: Store, run_id: str) -> str:
    """Return the run's page of the dashboard."""
    http = {"method": "GET", "path": f"/runs/{run_id}", "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
    context = {"http": http, "domainName": "x.lambda-url.us-east-1.on.aws"}
    event = {
        "version": "2.0",
        "rawPath": http["path"],
        "headers": {"x-forwarded-proto": "https"},
        "requestContext": context,
    }
    query = f"token={dashboard_token(MASTER, store.now_s() + 60)}"
    opened = webhook({**event, "rawQueryString": query}, None)
    page = webhook(
        {
            **event,
            "rawQueryString": "",
            "cookies": [cookie.partition(";")[0] for cookie in opened["cookies"]],
        },
        None,
    )
    assert page["statusCode"] == 200
    return str(page["body"])


def test_machines_and_operators_use_every_right_that_can_be_lent_and_a_machine_none_of_another_run(
    ministack: S3Server, stack: Stack
) -> None:
    here = settings(ministack, stack, "Webhook")
    issue_credentials = CredentialIssuer(here.bucket_url, {**here.environment, **here.place})
    machine = opened(ministack, stack, issue_credentials("tiny-1", 2))
    for key in (
        blob_key("tiny-1", b.digest(1)),
        evidence_key("tiny-1", 2, "trainer.log"),
        manifest_key("tiny-1", 10, 2),
    ):
        machine.put(key, b"x")
    assert machine.get(manifest_key("tiny-1", 10, 2)) is not None
    assert machine.get(manifest_key("tiny-1", 20, 2)) is None
    assert list(machine.list(run_prefix("tiny-1")))
    machine.delete(blob_key("tiny-1", b.digest(1)))
    for deny in (
        lambda: machine.put(blob_key("another-1", b.digest(1)), b"x"),
        lambda: machine.put(manifest_key("tiny-1", 10, 3), b"x"),
        lambda: machine.put(code_key("tiny-1"), b"x"),
        lambda: machine.get(manifest_key("another-1", 10, 2)),
        lambda: list(machine.list(run_prefix("another-1"))),
        lambda: machine.delete(pin_key("tiny-1", 10, 2)),
        lambda: machine.delete(manifest_key("tiny-1", 10, 3)),
    ):
        with pytest.raises(PermanentError, match="AccessDenied"):
            deny()
    keys = issue_credentials("", 0)
    operator = opened(ministack, stack, keys)
    operator.put(code_key("tiny-1"), b"x")
    assert operator.get(evidence_key("tiny-1", 2, "trainer.log")) is not None
    begin_and_abort(ministack, stack, keys, code_key("tiny-1"))
    assert unused(ministack, stack, "Pod") == set()


def opened(server: S3Server, stack: Stack, keys: PodKeys) -> Bucket:
    place = {"AWS_REGION": server.region, "AWS_ENDPOINT_URL": server.url}
    return open_bucket(f"s3://{stack.bucket}", place, lambda: keys)


def begin_and_abort(server: S3Server, stack: Stack, keys: PodKeys, key: str) -> None:
    """Do what an upload in parts does that fails."""
    client = replace(server, access_key=keys.access_key_id, secret_key=keys.secret_access_key).client()
    begun = client.create_multipart_upload(Bucket=stack.bucket, Key=key)
    client.abort_multipart_upload(Bucket=stack.bucket, Key=key, UploadId=begun["UploadId"])
