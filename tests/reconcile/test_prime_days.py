"""Days at a fake Prime Intellect, in virtual time: the effect of its faults on a run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from prime_train.adapters.bucket.folder import FolderBucket
from prime_train.adapters.pods_by_provider import AccountOfOne, PodsByProvider, provider_of
from prime_train.adapters.pods_prime import WORDS, PrimeAccount, PrimeClient, PrimePods, Settings, account_names
from prime_train.adapters.rental_api.account_check import InFile, Owner
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.adapters.store_memory import MemoryStore
from prime_train.control_plane.reconcile import Context, sweep
from prime_train.core.alert_kinds import AlertKind
from prime_train.core.causes import Cause
from prime_train.core.ledger import spent
from prime_train.core.run import Change, DesiredState, Run, RunState
from prime_train.core.wire import Phase, Ticket
from prime_train.ports import SshAddress
from tests import builders as b
from tests.fakes.http import ALWAYS, Hang, LoseResponse, Response
from tests.fakes.prime import NO_STOCK_400, SERVER_ERROR, SPOT, FakePrime, Plan

HEARTBEAT_S = 30
STEP_S = 10
DAY_S = 24 * 3600
TIMEOUTS = 25
ANSWER_S_MAX = 0.1
"""Time limit in seconds of a response; the fake responds within a few milliseconds."""
MARK = Mark("11111111")


@dataclass
class Days:
    """A run on machines of the fake, whose agents send heartbeats as long as their machines exist."""

    fake: FakePrime
    world: Context
    now_s: int = b.T0_S
    seq: int = 0

    def run(self) -> Run:
        record = self.world.store.load(b.RUN_ID)
        assert record is not None
        return record.run

    def pass_by(self, seconds: int) -> None:
        """Let time pass, with heartbeats, and sweeps when one is due."""
        for _ in range(seconds // HEARTBEAT_S):
            self.now_s += HEARTBEAT_S
            self.fake.advance(HEARTBEAT_S)
            self._heartbeat()
            if self.world.store.due(self.now_s, 1):
                sweep(self.world, self.now_s)

    def _heartbeat(self) -> None:
        attempt = self.run().current_attempt
        if attempt is None or attempt.agent_put_s is None or attempt.fenced_s is not None:
            return
        if provider_of(attempt.pod_id or "")[1] in {pod.pod_id for pod in self.fake.alive}:
            self.seq += 1
            step = 1 + (self.now_s - attempt.launched_s) // STEP_S
            self.world.store.heartbeat(
                b.heartbeat(self.seq, attempt=attempt.number, identity=attempt.identity, phase=Phase.TRAIN, step=step), self.now_s
            )


@pytest.fixture(name="days")
def _days(tmp_path: Path) -> Iterator[Days]:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        client = PrimeClient(Settings(fake.api_key, base_url=fake.url), read_s=ANSWER_S_MAX, pause_s=0.0)

        def pushed(connection: SshAddress, ticket: Ticket) -> None:
            assert connection.pod_id in {pod.pod_id for pod in fake.alive}

        store = MemoryStore()
        spec = b.spec(hardware={"gpus": ["A100"], "provider": "prime", "disk_gib": 50, "usd_per_hour_max": 2.0}, budget={"usd": 500.0})
        store.create(Run(b.RUN_ID, spec, created_s=b.T0_S))
        world = Context(
            store,
            FolderBucket(tmp_path / "bucket", make=True),
            PrimePods(client, pushed, mark=MARK, pause=lambda _: None),
            master=b"master",
            webhook_url="http://127.0.0.1:1",
            providers={"prime"},
        )
        yield Days(fake, world)


@pytest.mark.exhaustive
def test_a_day_with_25_status_timeouts_on_a_healthy_run_has_no_recovery(days: Days) -> None:
    days.pass_by(300)
    assert days.run().state is RunState.TRAINING
    for _ in range(TIMEOUTS):
        days.fake.fail(Hang(), method="GET", path="/pods/", times=ALWAYS)
        days.world.store.wake(b.RUN_ID, days.now_s)
        days.pass_by(HEARTBEAT_S)
        days.fake.heal()
        days.pass_by(DAY_S // TIMEOUTS - HEARTBEAT_S)
    assert len([request for request in days.fake.requests_to("GET", "/pods/") if request.status == 0]) >= TIMEOUTS
    run = days.run()
    assert (run.attempt, run.state) == (1, RunState.TRAINING)
    assert len(days.fake.world.pods) == 1
    assert days.now_s - b.T0_S >= DAY_S * 0.99


@pytest.mark.parametrize("fault", [SERVER_ERROR, Response(502, b"<html>"), Response(200, b"{}"), Response(404, b"<html>no route</html>")])
def test_nothing_that_the_api_says_in_error_is_taken_for_a_machine_that_is_gone(days: Days, fault: Response) -> None:
    days.pass_by(300)
    days.fake.fail(fault, method="GET", path="/pods/", times=ALWAYS)
    days.pass_by(1800)
    assert (days.run().attempt, days.run().state) == (1, RunState.TRAINING)


def test_no_capacity_for_an_hour_is_waited_for(days: Days) -> None:
    days.fake.rows = [row.model_copy(update={"stockStatus": "Unavailable"}) for row in days.fake.rows]
    days.pass_by(3600)
    assert days.run().state is RunState.QUEUED
    assert not days.fake.requests_to("POST", "/pods/")
    days.fake.rows = [SPOT]
    days.pass_by(900)
    assert days.run().state is RunState.TRAINING
    assert [alert.kind for alert in days.world.store.outbox(100)].count(AlertKind.NO_CAPACITY) == 0
    assert [line.kind for line in days.world.store.history(b.RUN_ID)].count("no_capacity") == 1


def test_orders_that_are_refused_for_an_hour_for_lack_of_stock_are_made_seldom_and_end_well(days: Days) -> None:
    days.fake.fail(NO_STOCK_400, method="POST", path="/pods/", times=ALWAYS)
    days.pass_by(3600)
    assert 5 <= len(days.fake.requests_to("POST", "/pods/")) <= 20
    days.fake.heal()
    days.pass_by(900)
    run = days.run()
    assert run.state is RunState.TRAINING
    assert {attempt.cause for attempt in run.attempts[:-1]} == {Cause.NO_CAPACITY}
    assert spent(run, days.now_s).usd < 1.0


def test_the_limit_of_the_account_is_waited_for_and_no_offer_is_put_last_for_it(days: Days) -> None:
    days.fake.terms.instances_max = 0
    days.pass_by(3600)
    run = days.run()
    assert (run.state, run.excluded, run.strikes) == (RunState.QUEUED, (), ())
    assert {attempt.cause for attempt in run.attempts} == {Cause.LIMIT_REACHED}
    assert 5 <= len(days.fake.requests_to("POST", "/pods/")) <= 20
    days.fake.terms.instances_max = 1
    days.pass_by(900)
    assert days.run().state is RunState.TRAINING


def test_lists_that_are_cut_short_for_an_hour_cost_no_machine_and_make_no_second_one(days: Days) -> None:
    days.fake.terms.cut_listings = ALWAYS
    days.fake.fail(LoseResponse(), method="POST", path="/pods/")
    days.pass_by(3600)
    assert len(days.fake.world.pods) == 1
    assert days.run().attempt == 1
    days.fake.terms.cut_listings = 0
    days.pass_by(600)
    assert (days.run().attempt, days.run().state) == (1, RunState.TRAINING)
    days.fake.terms.cut_listings = ALWAYS
    days.pass_by(3600)
    assert (days.run().attempt, days.run().state) == (1, RunState.TRAINING)
    assert len(days.fake.world.pods) == 1


@pytest.mark.parametrize("unusual", [SERVER_ERROR, Response(200, b"{}"), Response(401, b'{"detail": "who?"}')])
def test_the_machine_of_a_run_that_is_stopped_is_given_back_whatever_whoami_says(days: Days, tmp_path: Path, unusual: Response) -> None:
    client = PrimeClient(Settings(days.fake.api_key, base_url=days.fake.url), read_s=ANSWER_S_MAX, pause_s=0.0)
    owner = Owner(lambda: account_names(client), InFile(tmp_path / "account"), WORDS)
    days.world = replace(days.world, pods=PrimePods(client, lambda connection, ticket: None, mark=MARK, owner=owner))
    days.pass_by(300)
    assert days.run().state is RunState.TRAINING
    # A new process, that has not asked whose key it is.
    owner = Owner(lambda: account_names(client), InFile(tmp_path / "account"), WORDS)
    days.world = replace(days.world, pods=PrimePods(client, lambda connection, ticket: None, mark=MARK, owner=owner))
    days.fake.fail(unusual, path="/user/whoami", times=ALWAYS)
    days.fake.fail(SERVER_ERROR, method="DELETE", times=3)
    run = days.run()
    days.world.store.save(Change(replace(run, desired=DesiredState.CANCEL, version=run.version + 1, next_check_s=days.now_s)))
    days.pass_by(900)
    assert days.run().state is RunState.CANCELLED
    assert not days.fake.alive


def test_what_prime_bills_is_what_the_ledger_says_in_the_end(days: Days) -> None:
    here, client = days.world.pods, PrimeClient(Settings(days.fake.api_key, base_url=days.fake.url))
    assert isinstance(here, PrimePods)
    clock = days.fake.world.clock.now_s
    account = PrimeAccount(client, MARK, here.burn_usd_per_hour, clock=clock, wall=clock)
    pods = PodsByProvider({"prime": here}, ("prime",))
    days.world = replace(days.world, accounts=(AccountOfOne(account),), pods=pods)
    days.fake.plan = Plan(usd_per_hour=0.64)
    days.pass_by(3600)
    (pod,) = days.fake.alive
    days.fake.preempt(pod.pod_id)
    days.pass_by(3600)
    first = days.run().attempts[0]
    assert first.offer.usd_per_hour == 0.64
    assert first.billed_usd == pytest.approx(days.fake.pod(pod.pod_id).billed_usd)
    assert days.run().state is RunState.TRAINING
