"""The numbered form of stored values, and what becomes of values in older and newer forms."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from prime_train.runs.breaker import Watch
from prime_train.runs.run import DesiredState, Lease, Run, RunState
from prime_train.runs.sealed_record import sealed, unsealed
from prime_train.runs.stored_forms import FORM, NewerForm, UnknownField, in_todays_form
from prime_train.runs.stored_json import dump, load
from prime_train.runs.wire import Heartbeat
from prime_train.spec.causes import Cause
from tests import builders as b

MASTER = b"m" * 32


def stored(run: Run) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(dump(run))
    return content


def test_a_run_and_the_watchers_state_carry_the_number_of_their_form_and_load_again() -> None:
    run, watch = b.run(RunState.TRAINING), Watch(version=3, accounts={"prime": "user-1"})
    assert stored(run)["form"] == FORM
    assert load(Run, dump(run)) == run
    assert json.loads(dump(watch))["form"] == FORM
    assert load(Watch, dump(watch)) == watch


def test_what_older_versions_called_otherwise_keeps_its_meaning() -> None:
    content = stored(b.run(RunState.TRAINING, desired=DesiredState.STOP))
    del content["form"]
    content["want"] = content.pop("desired")
    content["branch"] = {"lineage": [{"run": "a-1", "step": 7}], "blobs_of": "a-1"}
    del content["lineage"]
    (attempt,) = content["attempts"]
    attempt["terminate_asked_s"] = 5
    del attempt["terminate_requested_s"]
    attempt["cause"] = "drained"
    content["orphans"] = [{"pod_id": "p", "name": "n", "asked_s": 9, "first_asked_s": 8}]
    content["spec"]["trainer"]["tree"] = content["spec"]["trainer"].pop("code")
    content["spec"]["checkpoints"]["marker"] = "DONE"
    del content["spec"]["checkpoints"]["sentinel"]
    run = load(Run, json.dumps(content))
    assert run.desired is DesiredState.STOP
    assert run.lineage is not None
    assert (run.lineage.source.run, run.lineage.source.step) == ("a-1", 7)
    assert (run.attempts[0].terminate_requested_s, run.attempts[0].cause) == (5, Cause.STOPPED_GRACEFULLY)
    assert (run.orphans[0].requested_s, run.orphans[0].first_requested_s) == (9, 8)
    assert run.spec.checkpoints.sentinel == "DONE"


def test_the_account_that_older_watchers_knew_is_still_compared() -> None:
    assert load(Watch, '{"version":3,"swept_s":5,"account":"user-1"}') == Watch(
        version=3, last_sweep_s=5, accounts={"prime": "user-1"}
    )
    assert load(Watch, '{"version":3,"account":""}') == Watch(version=3)


def test_a_heartbeat_of_an_older_agent_is_understood() -> None:
    older = json.loads(b.heartbeat(4, upload_problem="no answer").model_dump_json())
    older["upload_trouble"] = older.pop("upload_problem")
    assert Heartbeat.model_validate(older) == b.heartbeat(4, upload_problem="no answer")


@pytest.mark.parametrize("form", [FORM + 1, "2", None])
def test_a_newer_form_is_refused_with_its_number(form: object) -> None:
    with pytest.raises(
        NewerForm, match=f"it is in form {form}, and this version of prime-train reads forms up to {FORM}"
    ):
        in_todays_form(Run, {"form": form})


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ((), "brand_new"),
        (("attempts", 0), "attempts.brand_new"),
        (("attempts", 0, "offer"), "attempts.offer.brand_new"),
    ],
)
def test_a_field_that_a_reading_version_would_drop_is_refused_by_its_place(
    place: tuple[str | int, ...], name: str
) -> None:
    content = stored(b.run(RunState.TRAINING))
    part: Any = content
    for step in place:
        part = part[step]
    part["brand_new"] = 1
    with pytest.raises(UnknownField, match=f"^{name}: this version of prime-train does not know the field"):
        load(Run, json.dumps(content))


def test_every_value_of_today_is_read_with_none_of_its_fields_taken_for_unknown() -> None:
    schema = TypeAdapter(Run).json_schema()["$defs"]
    content = stored(b.run(RunState.TRAINING))
    assert set(content["attempts"][0]) == set(schema["Attempt"]["properties"])
    assert load(Run, json.dumps(content)).attempts


def test_a_record_in_the_bucket_carries_the_form_too_and_a_newer_one_is_refused() -> None:
    run = b.run(RunState.TRAINING)
    data = sealed(run, Lease(run.run_id), MASTER)
    assert json.loads(data.partition(b"\n")[2])[0]["form"] == FORM
    assert unsealed(data, MASTER) == (run, Lease(run.run_id))
    assert unsealed(data.replace(b'{"form":1', b'{"form":9'), MASTER) is None, "nobody else can write one"
