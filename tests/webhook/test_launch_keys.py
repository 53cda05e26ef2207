"""A launch key launches runs of its repository, reads and stops them, and opens nothing else, whatever its
holder writes into a call.
"""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.runs.change import requested
from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.launch_ids import OWNER_CHARS, is_id_of, launch_id
from prime_train.runs.launch_key import LAUNCH_KEY_HEADER, LaunchKey, launch_secret
from prime_train.runs.launched_run import ACTIVE_MAX
from prime_train.runs.run import Ancestor, Change, DesiredState, Lineage, Origin, Probe, Run, RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from prime_train.stores import remote_calls as store_calls
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.requests import Request, Response
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.webhook.calls import MASTER, NOW_S, SECRETS, bucket, handle

MINE, THEIRS = "acme/rl", "acme/secret"
NAME = "0123abcd"
NEW = launch_id("tiny", "ab12", "acme/rl")
ROW = LaunchKey(MINE, NOW_S - 1000, actor="ann", usd_max=10.0)
ORIGIN = Origin(MINE, "0" * 40, "configs/tiny.yaml", "ab12", actor="ann")
CODE_BYTES = 1234
METHODS = sorted({*store_calls.STORE_METHODS, store_calls.OPENING, "code_url", "revoke", "keys"})


class Plane:
    """A control plane with a launch key, and one run of each of two repositories."""

    def __init__(self, row: LaunchKey = ROW) -> None:
        self.store = MemoryStore()
        self.allow(row)
        for run_id, repository in (("tiny-mine1", MINE), ("tiny-their", THEIRS)):
            run = replace(
                b.run(RunState.QUEUED, run_id=run_id), origin=replace(ORIGIN, repository=repository)
            )
            assert self.store.create(run)
        self.signed: list[str] = []
        self.context = WebhookContext(
            self.store,
            (MASTER,),
            secrets=SECRETS,
            bucket_url="s3://training",
            bucket=bucket,
            bucket_keys={"AWS_ACCESS_KEY_ID": "static-key", "AWS_SECRET_ACCESS_KEY": "static-secret"},
            code_url=self._sign,
        )

    def _sign(self, key: str, size_bytes: int) -> str:
        assert size_bytes == CODE_BYTES
        self.signed.append(key)
        return f"https://bucket.example/{key}?signed"

    def allow(self, row: LaunchKey | None) -> None:
        watch = self.store.watch()
        rows = {} if row is None else {NAME: row}
        assert self.store.save_watch(
            replace(watch, version=watch.version + 1, launch_keys=rows), version=watch.version
        )

    def call(
        self, name: str, *given: object, key: str = NAME, secret: str = "", body: bytes | None = None
    ) -> Response:
        path = f"/v1/store/{name}"
        if body is None:
            takes = (
                store_calls.CODE_URL_TAKES if name == "code_url" else store_calls.STORE_METHODS[name].takes
            )
            body = store_calls.packed(takes, given)
        signature = sign(secret or launch_secret(MASTER, key), NOW_S, "POST", path, body)
        headers = {TIMESTAMP_HEADER: str(NOW_S), SIGNATURE_HEADER: signature, LAUNCH_KEY_HEADER: key}
        return handle(self.context, Request("POST", path, headers, body, NOW_S))

    def run(self, run_id: str) -> Run:
        record = self.store.load(run_id)
        assert record is not None
        return record.run


def test_a_launch_key_reads_what_is_for_rent() -> None:
    plane = Plane()
    assert plane.call("offers", body=b"[{}]") == Response(200, b"null")
    plane.allow(None)
    assert plane.call("offers", body=b"[{}]").status == 403


def answered(name: str, response: Response) -> Any:
    assert response.status == 200, response.body
    return store_calls.STORE_METHODS[name].gives.validate_json(response.body)


def new(**changes: Any) -> Run:
    made = replace(b.run(RunState.QUEUED, run_id=NEW), origin=ORIGIN, code_sha256="ab" * 32)
    return replace(made, **changes)


def test_a_run_is_launched_for_the_keys_repository_and_person_whatever_the_client_says() -> None:
    plane = Plane()
    forged = replace(ORIGIN, repository=THEIRS, actor="boss")
    sent = new(
        origin=forged,
        desired=DesiredState.STOP,
        created_s=1,
        next_check_s=None,
        best_step=10**6,
        excluded=("x",),
        version=7,
    )

    assert answered("create", plane.call("create", sent)) is True

    run = plane.run(NEW)
    assert run.origin is not None
    assert (run.origin.repository, run.origin.actor, run.origin.commit) == (MINE, "ann", ORIGIN.commit)
    assert (run.created_s, run.next_check_s, run.desired, run.best_step, run.excluded) == (
        NOW_S,
        NOW_S,
        DesiredState.RUN,
        0,
        (),
    )
    assert (run.spec, run.code_sha256) == (sent.spec, sent.code_sha256)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"origin": None}, "from GitHub only"),
        ({"run_id": "other-11"}, "is not an id of tiny"),
        ({"code_sha256": ""}, "was not uploaded"),
        ({"lineage": Lineage((Ancestor("secret-1", 5),), "secret-1")}, "another run's checkpoint"),
        ({"spec": b.spec(budget={"usd": 10.01})}, "permits 10 at most"),
    ],
)
def test_a_launch_beyond_the_key_is_refused(changes: dict[str, Any], words: str) -> None:
    plane = Plane()
    before = plane.store.list_runs()
    response = plane.call("create", new(**changes))
    assert (response.status, words in response.body.decode()) == (403, True), response.body
    assert plane.store.list_runs() == before


def test_only_runs_of_the_keys_repository_are_read() -> None:
    plane = Plane()
    assert [run.run_id for run in answered("list_runs", plane.call("list_runs"))] == ["tiny-mine1"]
    record = answered("load", plane.call("load", "tiny-mine1"))
    assert isinstance(record, RunRecord)
    assert record.run.run_id == "tiny-mine1"
    assert answered("load", plane.call("load", "tiny-their")) is None
    assert answered("history", plane.call("history", "tiny-their")) == []


def test_a_run_of_the_keys_repository_is_stopped_and_nothing_else_of_it_changed() -> None:
    plane = Plane()
    run = plane.run("tiny-mine1")
    wanted = requested(run, DesiredState.STOP, NOW_S)
    forged = replace(wanted, run=replace(wanted.run, spec=b.spec(budget={"usd": 9999.0}), best_step=77))

    assert answered("save", plane.call("save", forged)) is True

    after = plane.run("tiny-mine1")
    assert (after.desired, after.spec, after.best_step) == (DesiredState.STOP, run.spec, run.best_step)
    assert answered("save", plane.call("save", forged)) is False, "the run has changed meanwhile"


@pytest.mark.parametrize("run_id", ["tiny-mine1", "tiny-their", "tiny-none1"])
def test_no_other_change_of_a_run_is_made(run_id: str) -> None:
    plane = Plane()
    run = replace(plane.run("tiny-mine1"), run_id=run_id, spec=b.spec(budget={"usd": 9999.0}), version=2)
    before = plane.store.list_runs()
    assert plane.call("save", Change(run)).status == 403
    assert plane.store.list_runs() == before


def test_another_repositorys_run_is_not_stopped() -> None:
    plane = Plane()
    assert plane.call("save", requested(plane.run("tiny-their"), DesiredState.STOP, NOW_S)).status == 403
    assert plane.run("tiny-their").desired is DesiredState.RUN


def test_no_other_call_is_permitted_and_none_shows_a_key() -> None:
    plane = Plane()
    permitted = {"now_s", "create", "load", "list_runs", "history", "save", "code_url"}
    for name in METHODS:
        if name not in permitted:
            assert plane.call(name, body=b"[]").status in (403, 404, 422), name
    assert plane.call("opening", body=b"[]").status == 403
    about = plane.call("about", body=b"[]")
    assert about.status == 200
    assert not [
        word for word in ("static-key", "static-secret", MASTER.decode()) if word in about.body.decode()
    ]


def test_code_is_uploaded_to_a_new_run_only() -> None:
    plane = Plane()
    assert (
        plane.call("code_url", NEW, CODE_BYTES).body
        == f'"https://bucket.example/runs/{NEW}/code.tar.gz?signed"'.encode()
    )
    for run_id in ("tiny-mine1", "tiny-their", "../x", ""):
        assert plane.call("code_url", run_id, CODE_BYTES).status == 403
    assert plane.signed == [f"runs/{NEW}/code.tar.gz"]


@pytest.mark.parametrize(
    "size_bytes", ["", ", 0", ", -1", ", 1e15", f", {store_calls.CODE_BYTES_MAX + 1}", ", null"]
)
def test_no_url_is_given_for_code_of_any_size(size_bytes: str) -> None:
    plane = Plane()
    assert plane.call("code_url", body=f'["{NEW}"{size_bytes}]'.encode()).status == 422
    assert plane.signed == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (None, "was revoked"),
        (replace(ROW, expires_s=NOW_S), "has expired"),
        (replace(ROW, is_github=True), "was revoked"),
    ],
)
def test_a_revoked_or_expired_key_opens_nothing_at_once(row: LaunchKey | None, words: str) -> None:
    plane = Plane()
    assert plane.call("list_runs").status == 200
    plane.allow(row)
    response = plane.call("list_runs")
    assert (response.status, words in response.body.decode()) == (403, True)


def test_a_key_for_an_hour_ends_with_the_hour_and_with_its_row() -> None:
    plane = Plane(replace(ROW, is_github=True, actor=""))
    assert plane.call("list_runs", key=f"{NAME}.{NOW_S + 10}.bob").status == 200
    assert plane.call("create", new(), key=f"{NAME}.{NOW_S + 10}.bob").status == 200
    assert plane.run(NEW).origin == replace(ORIGIN, actor="bob")
    for until_s in (NOW_S, NOW_S - 1, NOW_S + 3601, 10**11):
        assert plane.call("list_runs", key=f"{NAME}.{until_s}.bob").status == 403
    plane.allow(None)
    assert plane.call("list_runs", key=f"{NAME}.{NOW_S + 10}.bob").status == 403


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        (NAME, "0" * 64),
        (NAME, launch_secret(b"another", NAME)),
        ("ffffffff", launch_secret(MASTER, NAME)),
        (f"{NAME}.{NOW_S + 10}.boss", launch_secret(MASTER, f"{NAME}.{NOW_S + 10}.bob")),
        ("../../etc", launch_secret(MASTER, "../../etc")),
        ("", launch_secret(MASTER, "")),
    ],
)
def test_a_forged_key_is_refused_before_the_store_is_asked(key: str, secret: str) -> None:
    plane = Plane()
    assert plane.call("list_runs", key=key, secret=secret).status == 401


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"code_sha256": "ab"}, "code_sha256 is no SHA-256"),
        ({"commit": "main; rm -rf /"}, "commit is no full hash"),
        ({"origin": replace(ORIGIN, commit="HEAD")}, "origin.commit is no full hash"),
        ({"origin": replace(ORIGIN, job_url="javascript:alert(1)")}, "no address of a job"),
        ({"origin": replace(ORIGIN, job_url="https://ann@evil.example/acme/rl/")}, "no address of a job"),
        ({"origin": replace(ORIGIN, branch="x\u202emain")}, "characters that are not shown"),
        ({"origin": replace(ORIGIN, key="k" * 301)}, "origin.key is longer than 300 characters"),
        ({"origin": replace(ORIGIN, pull=-1)}, "origin.pull is -1"),
        ({"spec": b.spec(environment={"X": "y" * 210_000})}, "bytes as it is stored"),
        (
            {"forecast": Forecast((StepEstimate("H100", 1, 1.0, -1.0),))},
            "forecast has numbers that cannot be true",
        ),
        (
            {"forecast": Forecast((StepEstimate("H100", 1, 1.0, 1e308),))},
            "forecast has numbers that cannot be true",
        ),
        (
            {"forecast": Forecast((StepEstimate("H100", 1, 1.0, 2.0),) * 101)},
            "forecast has numbers that cannot be true, or more",
        ),
        ({"forecast": Forecast(every_s=-1.0)}, "forecast has numbers that cannot be true"),
        ({"forecast": Forecast(stall_s=1e308)}, "forecast has numbers that cannot be true"),
        ({"forecast": Forecast(checkpoint_bytes=1e308)}, "forecast has numbers that cannot be true"),
        ({"forecast": Forecast(family="x" * 300_000)}, "forecast has numbers that cannot be true, or more"),
        ({"probe": Probe("tiny\n::error::", 10, 60.0)}, "probe names no config"),
        ({"probe": Probe("tiny", -1, 60.0)}, "probe names no config, or no number of steps"),
    ],
)
def test_what_a_run_cannot_be_is_refused_where_it_is_stored(changes: dict[str, Any], words: str) -> None:
    plane = Plane()
    refused = plane.call("create", new(**changes))
    assert refused.status == 403
    assert words in refused.body.decode()
    assert plane.store.load(NEW) is None


def test_a_key_cannot_start_more_and_more_runs_each_with_the_dollars_of_one() -> None:
    plane = Plane()
    made = [replace(new(), run_id=launch_id("tiny", f"{number:04x}", MINE)) for number in range(ACTIVE_MAX)]
    statuses = [plane.call("create", run).status for run in made]
    assert statuses == [200] * (ACTIVE_MAX - 1) + [403]
    assert plane.call("save", requested(plane.run(made[0].run_id), DesiredState.CANCEL, NOW_S)).status == 200


def test_a_job_of_the_repository_is_linked_and_launched() -> None:
    plane = Plane()
    job = f"https://github.example.org/{MINE}/actions/runs/12"
    sent = new(origin=replace(ORIGIN, job_url=job, pull=7, branch="feature/x"), commit="a" * 40)
    assert plane.call("create", sent).status == 200
    assert plane.run(NEW).origin == replace(ORIGIN, job_url=job, pull=7, branch="feature/x")


def test_the_code_of_another_repositorys_coming_run_cannot_be_replaced() -> None:
    plane = Plane()
    coming = launch_id("tiny", "ab12", THEIRS)
    assert coming[:-OWNER_CHARS] == NEW[:-OWNER_CHARS]
    for response in (plane.call("code_url", coming, CODE_BYTES), plane.call("create", new(run_id=coming))):
        assert (response.status, f"is not an id of a run of {MINE}" in response.body.decode()) == (403, True)
    assert plane.signed == []
    assert plane.store.load(coming) is None


def test_an_id_belongs_to_its_repository_however_that_is_written() -> None:
    assert is_id_of(launch_id("tiny", "ab12", "Acme/RL"), MINE)
    assert not is_id_of(launch_id("tiny", "ab12", THEIRS), MINE)
    assert not any(is_id_of(text, MINE) for text in ("", "tiny", NEW[:-1], NEW + "a", NEW.upper()))
