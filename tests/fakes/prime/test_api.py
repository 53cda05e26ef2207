"""The fake's API without machines: formats, pages, keys, money and refusals."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.fakes.http import ALWAYS, CutRequest, Hang, LoseResponse, Replace
from tests.fakes.prime import (
    BAD_GATEWAY,
    EXAMPLES,
    NEVER_S,
    ON_DEMAND,
    SPOT,
    SPOT_BOX,
    TOO_MANY,
    ApiKey,
    End,
    FakePrime,
    InvalidForm,
    Plan,
    SshForm,
    Team,
)
from tests.fakes.prime.client import ask, call, create, pod_body


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path, machines=False) as running:
        yield running


def names(fake: FakePrime) -> list[str]:
    return [pod["id"] for pod in call(fake, "GET", "/pods/")["data"]]


# ------------------------------------------------------------------------------------------------------------
# availability


def test_offers_come_in_pages(fake: FakePrime) -> None:
    pages = [call(fake, "GET", f"/availability/gpus?page={page}&page_size=2") for page in (1, 2, 3)]
    assert [page["totalCount"] for page in pages] == [3, 3, 3]
    assert [[row["cloudId"] for row in page["items"]] for page in pages] == [
        [ON_DEMAND.cloudId, SPOT.cloudId],
        [SPOT_BOX.cloudId],
        [],
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("gpu_type=H100_80GB", [SPOT_BOX]),
        ("gpu_count=1", [ON_DEMAND, SPOT]),
        ("regions=eu_north&regions=canada", [SPOT, SPOT_BOX]),
        ("data_center_id=US-KS-2", [ON_DEMAND]),
        ("socket=SXM5", [SPOT_BOX]),
        ("security=community_cloud", []),
        ("cloud_id=a100-80gb-spot", [SPOT]),
    ],
)
def test_offers_are_filtered(fake: FakePrime, query: str, found: list[object]) -> None:
    assert call(fake, "GET", f"/availability/gpus?{query}")["items"] == [
        row.model_dump() for row in EXAMPLES if row in found
    ]


def test_the_summary_tells_the_cheapest_by_kind_and_count(fake: FakePrime) -> None:
    kinds = call(fake, "GET", "/availability/gpu-summary")
    assert kinds["A100_80GB"]["1"]["cheapest"] == {
        "onDemand": 1.64,
        "communityPrice": None,
        "spotPrice": 0.62,
    }
    assert kinds["H100_80GB"]["8"]["eu_north"]["spotPrice"] == 9.20


def test_the_first_listings_can_be_empty_while_the_summary_is_full(fake: FakePrime) -> None:
    fake.terms.empty_listings = 2
    counts = [call(fake, "GET", "/availability/gpus")["totalCount"] for _ in range(3)]
    assert counts == [0, 0, 3]
    assert call(fake, "GET", "/availability/gpu-summary")


def test_too_large_a_page_is_not_understood(fake: FakePrime) -> None:
    answer = ask(fake, "GET", "/availability/gpus?page_size=101")
    assert (answer.status_code, answer.json()["errors"][0]["param"]) == (422, "page_size")


# ------------------------------------------------------------------------------------------------------------
# life


def test_a_pod_comes_up_step_by_step(fake: FakePrime) -> None:
    fake.plan = Plan(provision_s=60, install_s=100)
    made = call(fake, "POST", "/pods/", body=pod_body())
    assert (made["status"], made["installationStatus"], made["sshConnection"], made["ip"]) == (
        "PROVISIONING",
        "PENDING",
        None,
        None,
    )
    seen = []
    for _ in range(4):
        status = call(fake, "GET", f"/pods/status?pod_ids={made['id']}")["data"][0]
        seen.append((status["status"], status["installationStatus"], status["installationProgress"]))
        fake.advance(55)
    assert seen == [
        ("PROVISIONING", "PENDING", 0),
        ("PROVISIONING", "PENDING", 0),
        ("ACTIVE", "ACTIVE", 50),
        ("ACTIVE", "FINISHED", 100),
    ]


def test_a_pod_can_stay_in_provisioning(fake: FakePrime) -> None:
    fake.plan = Plan(provision_s=NEVER_S)
    pod_id = create(fake)
    fake.advance(1e6)
    assert call(fake, "GET", f"/pods/{pod_id}")["status"] == "PROVISIONING"
    assert fake.balance_usd == 100


def test_an_installation_can_fail(fake: FakePrime) -> None:
    fake.plan = Plan(install_failure="driver not found")
    pod = call(fake, "GET", f"/pods/{create(fake)}")
    assert (pod["installationStatus"], pod["installationFailure"]) == ("ERROR", "driver not found")


def test_a_pod_costs_what_its_row_says_with_its_disk(fake: FakePrime) -> None:
    pod = call(fake, "GET", f"/pods/{create(fake, diskSize=1000)}")
    assert pod["priceHr"] == pytest.approx(1.64 + 1000 * 0.00014)


def test_a_pod_can_cost_more_than_was_queried(fake: FakePrime) -> None:
    fake.plan = Plan(usd_per_hour=9.0)
    assert call(fake, "POST", "/pods/", body=pod_body(maxPrice=1.8))["priceHr"] == 9.0


@pytest.mark.parametrize(
    ("form", "connection", "ip"),
    [
        (SshForm.PLAIN, "root@127.0.0.1 -p 9", "127.0.0.1"),
        (SshForm.COMMAND, "ssh root@127.0.0.1 -p 9", "127.0.0.1"),
        (SshForm.LIST, ["root@127.0.0.1 -p 9"], ["127.0.0.1"]),
        (SshForm.NULL, None, "127.0.0.1"),
        (SshForm.NULLS, [None], ["127.0.0.1"]),
        (SshForm.EMPTY, "", "127.0.0.1"),
        (SshForm.NO_HOST, "root@ -p 22", "127.0.0.1"),
    ],
)
def test_a_connection_has_the_form_that_was_chosen_and_may_be_hidden_first(
    fake: FakePrime, form: SshForm, connection: object, ip: object
) -> None:
    fake.plan = Plan(ssh_form=form, ssh_hidden_s=10)
    pod_id = create(fake)
    first = call(fake, "GET", f"/pods/{pod_id}")
    fake.advance(10)
    then = call(fake, "GET", f"/pods/{pod_id}")
    assert (first["sshConnection"], first["ip"]) == ([None], [None])
    assert (then["sshConnection"], then["ip"]) == (connection, ip)


def test_a_deleted_pod_is_gone_but_in_the_history(fake: FakePrime) -> None:
    pod_id = create(fake)
    fake.advance(3600)
    assert call(fake, "DELETE", f"/pods/{pod_id}") == {"status": "TERMINATED"}
    assert names(fake) == []
    assert call(fake, "GET", f"/pods/{pod_id}")["status"] == "TERMINATED"
    assert call(fake, "DELETE", f"/pods/{pod_id}") == {"status": "TERMINATED"}
    fake.terms.forgets_deleted = True
    assert ask(fake, "GET", f"/pods/{pod_id}").status_code == 404
    assert ask(fake, "DELETE", f"/pods/{pod_id}").json() == {"detail": "Pod not found"}
    (row,) = call(fake, "GET", "/pods/history")["data"]
    assert (row["id"], row["totalBilledPrice"]) == (pod_id, pytest.approx(1.64 + 120 * 0.00014))


def test_deleting_can_take_its_time(fake: FakePrime) -> None:
    fake.plan = Plan(deleting_s=30)
    pod_id = create(fake)
    assert call(fake, "DELETE", f"/pods/{pod_id}") == {"status": "DELETING"}
    assert names(fake) == [pod_id]
    fake.advance(30)
    assert names(fake) == []


@pytest.mark.parametrize(("seen_as", "status"), [(End.TERMINATED, "TERMINATED"), (End.ERROR, "ERROR")])
def test_a_preempted_pod_is_terminated_and_out_of_the_list_or_in_error_and_in_it(
    fake: FakePrime, seen_as: End, status: str
) -> None:
    pod_id = create(fake, SPOT)
    fake.preempt(pod_id, seen_as)
    assert names(fake) == ([pod_id] if seen_as is End.ERROR else [])
    assert call(fake, "GET", f"/pods/{pod_id}")["status"] == status
    assert call(fake, "GET", f"/pods/status?pod_ids={pod_id}")["data"][0]["sshConnection"] is None
    call(fake, "DELETE", f"/pods/{pod_id}")
    assert names(fake) == []


def test_a_preempted_pod_can_be_missing(fake: FakePrime) -> None:
    pod_id = create(fake, SPOT)
    fake.preempt(pod_id, End.MISSING)
    assert ask(fake, "GET", f"/pods/{pod_id}").status_code == 404
    assert call(fake, "GET", f"/pods/status?pod_ids={pod_id}")["data"] == []


def test_a_plan_can_have_the_pod_preempted(fake: FakePrime) -> None:
    fake.plan = Plan(provision_s=10, preempted_s=100)
    pod_id = create(fake, SPOT)
    fake.advance(3600)
    assert call(fake, "GET", f"/pods/{pod_id}")["status"] == "TERMINATED"
    assert fake.pod(pod_id).billed_usd == pytest.approx(0.62 * 100 / 3600)


def test_the_list_can_lag(fake: FakePrime) -> None:
    fake.terms.list_lag_s = 5
    pod_id = create(fake)
    assert names(fake) == []
    assert call(fake, "GET", f"/pods/{pod_id}")["status"] == "ACTIVE"
    fake.advance(5)
    assert names(fake) == [pod_id]
    call(fake, "DELETE", f"/pods/{pod_id}")
    assert call(fake, "GET", "/pods/")["data"][0]["status"] == "ACTIVE"
    fake.advance(5)
    assert names(fake) == []


# ------------------------------------------------------------------------------------------------------------
# money


def test_an_empty_wallet_deletes_the_pods_at_once(fake: FakePrime) -> None:
    fake.rows = [SPOT.priced(2.0)]
    fake.balance_usd = 5.0
    pods = [create(fake, SPOT), create(fake, SPOT)]
    fake.advance(3600)
    assert fake.balance_usd == pytest.approx(1.0)
    assert names(fake) == pods
    fake.advance(3600)
    assert names(fake) == []
    assert fake.balance_usd == 0
    assert [fake.pod(pod_id).billed_usd for pod_id in pods] == pytest.approx([2.5, 2.5])


def test_the_wallet_tells_what_was_billed(fake: FakePrime) -> None:
    pod_id = create(fake, SPOT)
    fake.advance(7200)
    wallet = call(fake, "GET", "/billing/wallet?limit=1")
    assert wallet["balance_usd"] == pytest.approx(100 - 1.24)
    assert [
        (row["resource_type"], row["resource_id"], row["amount_usd"]) for row in wallet["recent_billings"]
    ] == [("Instance", pod_id, pytest.approx(1.24))]


def test_without_money_nothing_is_created(fake: FakePrime) -> None:
    fake.balance_usd = 0.5
    fake.terms.deposit_h = 1.0
    answer = ask(fake, "POST", "/pods/", body=pod_body())
    assert (answer.status_code, answer.json()["detail"]) == (
        402,
        "Insufficient balance, please top up your wallet",
    )
    assert fake.alive == []


def test_a_team_pays_for_itself(fake: FakePrime) -> None:
    fake.add_team(Team("team-1"), balance_usd=7.0)
    pod = call(fake, "POST", "/pods/", body=pod_body(SPOT, team="team-1"))
    fake.advance(3600)
    assert pod["teamId"] == "team-1"
    assert call(fake, "GET", "/billing/wallet?teamId=team-1")["balance_usd"] == pytest.approx(6.38)
    assert fake.balance_usd == 100
    assert [team["teamId"] for team in call(fake, "GET", "/user/teams")["data"]] == ["team-1"]
    assert ask(fake, "POST", "/pods/", body=pod_body(SPOT, team="team-2")).status_code == 403
    assert [member["userId"] for member in call(fake, "GET", "/teams/team-1/members")["data"]] == ["user-1"]


# ------------------------------------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"isSpot": True}, "pod.isSpot"),
        ({"gpuCount": 0}, "pod.gpuCount"),
        ({"envVars": {"A": "1"}}, "pod.envVars"),
        ({"socket": "X"}, "pod.socket"),
        ({"gpuType": "H100"}, "pod.gpuType"),
        ({"security": "secure"}, "pod.security"),
        ({"image": "my_image"}, "pod.image"),
    ],
)
def test_what_is_not_understood_is_refused_in_either_form(
    fake: FakePrime, change: dict[str, object], param: str
) -> None:
    answer = ask(fake, "POST", "/pods/", body=pod_body(ON_DEMAND, **change))
    assert (answer.status_code, [error["param"] for error in answer.json()["errors"]]) == (422, [param])
    fake.terms.invalid_form = InvalidForm.DETAIL
    (error,) = ask(fake, "POST", "/pods/", body=pod_body(ON_DEMAND, **change)).json()["detail"]
    assert error["loc"] == ["body", *param.split(".")]
    assert fake.alive == []


def test_what_is_not_known_is_let_pass_outside_the_pod_but_no_unknown_provider(fake: FakePrime) -> None:
    body = {**pod_body(), "aNewField": 1}
    assert ask(fake, "POST", "/pods/", body=body).status_code == 200
    answer = ask(fake, "POST", "/pods/", body={**body, "provider": {"type": "nobody"}})
    assert (answer.status_code, answer.json()["errors"][0]["param"]) == (422, "provider.type")


def test_an_account_may_have_so_many_pods(fake: FakePrime) -> None:
    fake.terms.instances_max = 1
    pod_id = create(fake)
    answer = ask(fake, "POST", "/pods/", body=pod_body())
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "Maximum number of instances reached. Limit: 1",
    )
    call(fake, "DELETE", f"/pods/{pod_id}")
    create(fake)


def test_machines_are_not_reserved(fake: FakePrime) -> None:
    assert ask(fake, "POST", "/pods/", body=pod_body(prepaidForHr=24)).json() == {
        "detail": "Reserved instances are not available"
    }


def test_pages_of_pods_can_be_shorter_than_requested_and_lists_than_they_say(fake: FakePrime) -> None:
    ids = [create(fake) for _ in range(3)]
    assert names(fake) == ids
    assert call(fake, "GET", "/pods/?limit=1000")["limit"] == 100
    fake.terms.pods_a_page = 2
    assert [pod["id"] for pod in call(fake, "GET", "/pods/?offset=2")["data"]] == ids[2:]
    fake.terms.cut_listings = 1
    cut = call(fake, "GET", "/pods/")
    assert (len(cut["data"]), cut["total_count"]) == (1, 3)
    assert call(fake, "GET", "/pods/")["total_count"] == 3


@pytest.mark.parametrize("refusal", [(400, "out of stock"), (409, "no capacity"), (503, "unavailable")])
def test_an_offer_can_vanish_between_list_and_create(fake: FakePrime, refusal: tuple[int, str]) -> None:
    fake.terms.no_capacity = refusal
    fake.change_after_listing([ON_DEMAND])
    assert call(fake, "GET", "/availability/gpus")["totalCount"] == 3
    answer = ask(fake, "POST", "/pods/", body=pod_body(SPOT))
    assert (answer.status_code, answer.json()["detail"]) == refusal
    assert fake.alive == []


def test_a_price_can_rise_between_list_and_create(fake: FakePrime) -> None:
    fake.change_after_listing([SPOT.priced(0.90)])
    call(fake, "GET", "/availability/gpus")
    assert ask(fake, "POST", "/pods/", body=pod_body(SPOT, maxPrice=0.65)).status_code == 400
    assert call(fake, "POST", "/pods/", body=pod_body(SPOT, maxPrice=0.95))["priceHr"] == 0.90


@pytest.mark.parametrize("change", [{"diskSize": 20}, {"image": "flux"}, {"image": "custom_template"}])
def test_what_the_row_does_not_have_is_refused(fake: FakePrime, change: dict[str, object]) -> None:
    assert ask(fake, "POST", "/pods/", body=pod_body(ON_DEMAND, **change)).status_code == 400


def test_a_maximum_price_can_be_required(fake: FakePrime) -> None:
    fake.terms.max_price_required = True
    assert ask(fake, "POST", "/pods/", body=pod_body()).json() == {
        "detail": "Missing field: max_price not specified"
    }


def test_a_key_is_good_for_what_it_is_good_for(fake: FakePrime) -> None:
    fake.world.api_keys["pit_reader"] = ApiKey(
        scope={"instances": frozenset({"read"}), "user": frozenset({"read"})}
    )
    assert ask(fake, "GET", "/pods/", key="pit_unknown").status_code == 401
    assert ask(fake, "GET", "/pods/", key="pit_reader").status_code == 200
    assert ask(fake, "POST", "/pods/", key="pit_reader", body=pod_body()).status_code == 403
    scope = ask(fake, "GET", "/user/whoami", key="pit_reader").json()["data"]["scope"]
    assert scope["instances"] == {"read": True, "write": False}


def test_a_path_without_its_slash_is_redirected(fake: FakePrime) -> None:
    answer = ask(fake, "GET", "/pods?limit=1")
    assert (answer.status_code, answer.headers["Location"]) == (307, f"{fake.url}/api/v1/pods/?limit=1")
    assert ask(fake, "POST", "/pods", body=pod_body(), follow=True).json()["name"] == "pt-run-e1"


def test_a_path_or_a_method_that_there_is_not_is_reported_so(fake: FakePrime) -> None:
    assert ask(fake, "GET", "/nothing").status_code == 404
    assert ask(fake, "PATCH", "/pods/some-id").status_code == 405


# ------------------------------------------------------------------------------------------------------------
# faults


def test_a_fault_is_met_as_often_as_it_was_ordered(fake: FakePrime) -> None:
    fake.fail(TOO_MANY, method="GET", path="^/pods/$", first=2, times=2)
    assert [ask(fake, "GET", "/pods/").status_code for _ in range(4)] == [200, 429, 429, 200]


def test_an_error_can_be_a_page_for_people(fake: FakePrime) -> None:
    fake.fail(BAD_GATEWAY, path="/availability")
    answer = ask(fake, "GET", "/availability/gpus")
    assert (answer.status_code, answer.headers["Content-Type"]) == (502, "text/html")


def test_the_answer_to_a_create_that_took_effect_can_be_lost(fake: FakePrime) -> None:
    fake.fail(LoseResponse(), method="POST", path="^/pods/$")
    with pytest.raises(requests.ConnectionError):
        ask(fake, "POST", "/pods/", body=pod_body(name="the-lost-one"))
    assert [pod["name"] for pod in call(fake, "GET", "/pods/")["data"]] == ["the-lost-one"]
    assert [request.status for request in fake.requests_to("POST", "/pods/")] == [0]


def test_a_request_can_be_cut_before_it_took_effect(fake: FakePrime) -> None:
    fake.fail(CutRequest(), method="POST", path="^/pods/$")
    with pytest.raises(requests.ConnectionError):
        ask(fake, "POST", "/pods/", body=pod_body())
    assert names(fake) == []


def test_a_status_can_hang_until_the_client_gives_up(fake: FakePrime) -> None:
    fake.fail(Hang(), path="/pods/status")
    with pytest.raises(requests.ReadTimeout):
        requests.get(
            f"{fake.url}/api/v1/pods/status?pod_ids=x",
            headers={"Authorization": f"Bearer {fake.api_key}"},
            timeout=0.05,
        )
    assert call(fake, "GET", "/pods/status?pod_ids=x") == {"data": [], "status": "ok"}


def test_a_create_can_take_effect_without_a_word(fake: FakePrime) -> None:
    fake.fail(Hang(done=True), method="POST", path="^/pods/$")
    with pytest.raises(requests.ReadTimeout):
        headers = {"Authorization": f"Bearer {fake.api_key}"}
        requests.post(
            f"{fake.url}/api/v1/pods/", headers=headers, json=pod_body(name="the-late-one"), timeout=0.2
        )
    assert [pod["name"] for pod in call(fake, "GET", "/pods/")["data"]] == ["the-late-one"]


def test_a_create_that_took_effect_can_be_reported_as_an_error(fake: FakePrime) -> None:
    fake.fail(Replace(BAD_GATEWAY), method="POST", path="^/pods/$")
    assert ask(fake, "POST", "/pods/", body=pod_body()).status_code == 502
    assert len(names(fake)) == 1


def test_what_hangs_is_let_go_when_the_api_is_well_again(fake: FakePrime) -> None:
    fake.fail(Hang(), path="^/pods/$", times=ALWAYS)
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(ask, fake, "GET", "/pods/")
        fake.await_requests("GET", "/pods/")
        fake.heal()
        assert isinstance(asking.exception(), requests.ConnectionError)
    assert names(fake) == []


# ---------------------------------------------------------------------------------------------------------
# keys and disks


def test_the_primary_key_can_be_changed(fake: FakePrime) -> None:
    ids = [
        call(fake, "POST", "/ssh_keys/", body={"name": name, "publicKey": f"ssh-ed25519 AAAA {name}"})["id"]
        for name in ("a", "b")
    ]
    assert [key["isPrimary"] for key in call(fake, "GET", "/ssh_keys/")["data"]] == [True, False]
    call(fake, "PATCH", f"/ssh_keys/{ids[1]}", body={"isPrimary": True})
    assert [key["isPrimary"] for key in call(fake, "GET", "/ssh_keys/")["data"]] == [False, True]
    assert ask(fake, "POST", "/pods/", body=pod_body(sshKeyId="unknown")).status_code == 404


def test_a_disk_goes_to_pods_of_its_data_center_only(fake: FakePrime) -> None:
    body = {
        "disk": {"size": 100, "name": "cache", "dataCenterId": "FIN-01"},
        "provider": {"type": "datacrunch"},
    }
    disk_id = call(fake, "POST", "/disks/", body=body)["id"]
    offers = call(fake, "GET", f"/availability/gpus?disks={disk_id}")["items"]
    assert {row["dataCenter"] for row in offers} == {"FIN-01"}
    assert ask(fake, "POST", "/pods/", body=pod_body(ON_DEMAND, disks=[disk_id])).status_code == 400
    pod = call(fake, "POST", "/pods/", body=pod_body(SPOT, disks=[disk_id]))
    assert [(disk["id"], disk["mountPath"]) for disk in pod["attachedResources"]] == [(disk_id, "/workspace")]
    assert ask(fake, "POST", "/pods/", body=pod_body(SPOT, disks=[disk_id])).status_code == 400
    assert ask(fake, "DELETE", f"/disks/{disk_id}").status_code == 409
    call(fake, "DELETE", f"/pods/{pod['id']}")
    fake.advance(3600)
    assert fake.balance_usd == pytest.approx(100 - 100 * 0.000111)
    assert call(fake, "DELETE", f"/disks/{disk_id}") == {"status": "TERMINATED"}
