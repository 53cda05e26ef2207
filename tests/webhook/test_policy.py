"""The door of the control plane: what remote clients may store, by the operator's policy."""

from dataclasses import replace

import pytest

from prime_train.errors import UsageError
from prime_train.runs.change import resumed
from prime_train.runs.run import Change, Run, RunState
from prime_train.runs.wire import SIGNATURE_HEADER, STORE_PATH, TIMESTAMP_HEADER, operator_key, sign
from prime_train.spec.policy import InForce, Policy
from prime_train.stores.memory import MemoryStore
from prime_train.stores.remote_calls import ABOUT, ABOUT_GIVES, STORE_METHODS, packed
from prime_train.webhook.requests import Request
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.webhook.calls import MASTER, NOW_S, bucket, handle

LOCAL: dict[str, object] = {"provider": "local"}
PRIME: dict[str, object] = {"provider": "prime"}


def call(context: WebhookContext, name: str, *arguments: object) -> tuple[int, str]:
    """Make a call of the store as a remote client does, signed with the master key; return status and
    body.
    """
    takes = STORE_METHODS[name].takes if name in STORE_METHODS else None
    body = packed(takes, arguments) if takes is not None else b"[]"
    path = STORE_PATH + name
    signature = sign(operator_key(MASTER), NOW_S, "POST", path, body)
    answer = handle(
        context,
        Request("POST", path, {TIMESTAMP_HEADER: str(NOW_S), SIGNATURE_HEADER: signature}, body, NOW_S),
    )
    return answer.status, answer.body.decode()


def at_door(policy: Policy | None = None, *, runs: tuple[Run, ...] = ()) -> WebhookContext:
    """Return a webhook of a control plane that rents from Prime, which has these runs."""
    store = MemoryStore()
    for run in runs:
        assert store.create(run)
    in_force = InForce(policy or Policy(), "policy.yaml", rents_from=("prime",), defaults=("prime",))
    return WebhookContext(
        store, (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=bucket, policy=lambda: in_force
    )


def launched(hardware: dict[str, object]) -> Run:
    return b.run(spec=b.spec(hardware=hardware))


def saved(run: Run, **changes: object) -> Change:
    return Change(replace(run, version=run.version + 1, **changes))  # type: ignore[arg-type]  # fields of a run, as each test names them


def test_a_run_on_the_control_planes_own_machine_is_refused_with_the_line_that_would_allow_it() -> None:
    door = at_door()
    status, body = call(door, "create", launched(LOCAL))
    assert (status, door.store.list_runs()) == (422, [])
    assert "by this line in policy.yaml: providers: [prime, local]" in body
    assert call(door, "create", launched(PRIME))[0] == 200


def test_a_run_that_the_policy_allows_is_stored() -> None:
    assert call(at_door(Policy(providers=("prime", "local"))), "create", launched(LOCAL)) == (200, "true")


def test_a_stored_run_cannot_be_changed_into_one_that_is_not_allowed() -> None:
    run = launched(PRIME)
    door = at_door(runs=(run,))
    assert call(door, "save", saved(run, spec=b.spec(hardware=LOCAL)))[0] == 422
    assert door.store.list_runs() == [run]


def test_a_run_with_more_dollars_than_a_run_may_cost_is_not_resumed() -> None:
    run = b.run(RunState.STOPPED, spec=b.spec(hardware=PRIME, budget={"usd": 10}))
    door = at_door(Policy(usd_max=20), runs=(run,))
    more = b.spec(hardware=PRIME, budget={"usd": 30})
    assert call(door, "save", resumed(replace(run, spec=more), NOW_S))[0] == 422
    assert call(door, "save", resumed(run, NOW_S))[0] == 200


def test_a_run_of_the_person_at_the_home_is_not_resumed_from_elsewhere_but_can_be_stopped() -> None:
    ended, active = (
        b.run(RunState.STOPPED, spec=b.spec(hardware=LOCAL)),
        b.run(RunState.TRAINING, spec=b.spec(hardware=LOCAL)),
    )
    assert call(at_door(runs=(ended,)), "save", resumed(ended, NOW_S))[0] == 422
    assert call(at_door(runs=(active,)), "save", saved(active, next_check_s=NOW_S))[0] == 200


@pytest.mark.parametrize("name", ["create", "save"])
def test_a_config_that_is_too_large_to_be_stored_is_neither_launched_nor_resumed_with(name: str) -> None:
    run = launched(PRIME)
    door = at_door(runs=(run,) if name == "save" else ())
    large = replace(run, spec=b.spec(hardware=PRIME, environment={"LONG": "x" * 140_000}))
    status, body = call(door, name, large if name == "create" else saved(run, spec=large.spec))
    assert (status, "at most 131,072 fit; the most take environment.LONG (140,000)" in body) == (422, True)
    assert door.store.list_runs() == ([run] if name == "save" else [])


def test_nothing_is_launched_while_the_policy_cannot_be_read() -> None:
    def broken() -> InForce:
        raise UsageError("the policy of this control plane cannot be used")

    door = WebhookContext(
        MemoryStore(), (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=bucket, policy=broken
    )
    status, body = call(door, "create", launched(PRIME))
    assert (status, "cannot be used" in body, door.store.list_runs()) == (422, True, [])
    assert call(door, "list_runs")[0] == 200
    about = ABOUT_GIVES.validate_json(call(door, ABOUT)[1])
    assert (about.policy, "cannot be used" in about.policy_unusable) == (None, True), (
        "a watcher elsewhere rents nothing either"
    )


@pytest.mark.parametrize(
    "policy", [Policy(), Policy(providers=("local",), images=("a/*",), usd_max=5, callers=("@ann",))]
)
def test_clients_are_told_the_policy(policy: Policy) -> None:
    told = ABOUT_GIVES.validate_json(call(at_door(policy), ABOUT)[1]).policy
    assert told == InForce(policy, "policy.yaml", rents_from=("prime",), defaults=("prime",))


@pytest.mark.parametrize("name", ["create", "save"])
def test_a_run_that_names_no_provider_is_stored_with_those_by_which_it_was_judged(name: str) -> None:
    run = launched({})
    door = at_door(runs=(launched(PRIME),) if name == "save" else ())
    assert call(door, name, run if name == "create" else saved(run))[0] == 200
    (stored,) = door.store.list_runs()
    assert (stored.spec.hardware.provider, stored.from_elsewhere) == ("prime", True)


def test_a_run_without_a_provider_is_refused_where_the_default_one_is_not_allowed() -> None:
    door = at_door(Policy(providers=("runpod",)))
    status, body = call(door, "create", launched({}))
    assert (status, door.store.list_runs()) == (422, [])
    assert "write hardware.provider, one of runpod" in body


def test_a_client_cannot_say_that_a_run_was_launched_at_the_home() -> None:
    door = at_door()
    assert call(door, "create", replace(launched(PRIME), from_elsewhere=False))[0] == 200
    (stored,) = door.store.list_runs()
    assert call(door, "save", saved(stored, from_elsewhere=False, next_check_s=NOW_S))[0] == 200
    assert [run.from_elsewhere for run in door.store.list_runs()] == [True]


def test_a_run_of_the_person_at_the_home_stays_theirs_when_a_watcher_elsewhere_saves_it() -> None:
    run = launched(LOCAL)
    door = at_door(runs=(run,))
    assert call(door, "save", saved(run, from_elsewhere=True, next_check_s=NOW_S))[0] == 200
    assert [run.from_elsewhere for run in door.store.list_runs()] == [False]
