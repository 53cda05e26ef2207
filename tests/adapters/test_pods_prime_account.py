"""The wallet, bills, whose pods are whose, and pushes in the background, at a fake Prime Intellect."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prime_train.adapters.pods_prime import BackgroundPusher, Connection, Mark, Owner, PrimeAccount, PrimeClient, PrimePods, Settings
from prime_train.adapters.pods_prime.account import BILLED_AFTER_S, BILLS_S, FUNDS_S
from prime_train.core.offers import rank
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.core.wire import Ticket
from prime_train.ports import OutsideError, PermanentError, TemporaryError
from tests.fakes.prime import SERVER_ERROR, FakePrime, Plan

NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("A100",), disk_gib=50)
TICKET = Ticket(run="tiny-1", epoch=1, url="http://127.0.0.1:1", key="0123abcd")
CONNECTION = Connection("p1", "root", "127.0.0.1", 9)
OURS, THEIRS = Mark.of(b"ours"), Mark.of(b"theirs")


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path, machines=False) as fake:
        yield fake


def client(fake: FakePrime) -> PrimeClient:
    return PrimeClient(Settings(fake.api_key, base_url=fake.url))


def pods_of(fake: FakePrime, mark: Mark) -> PrimePods:
    return PrimePods(client(fake), lambda connection, ticket: None, mark=mark)


def account_of(fake: FakePrime, pods: PrimePods, clock: Callable[[], float] | None = None) -> PrimeAccount:
    """By the fake's own time of day."""
    burn = pods.burn_usd_per_hour
    return PrimeAccount(client(fake), OURS, burn, clock=clock or Clock(), wall=fake.world.clock.now_s)


def rent(pods: PrimePods, name: str = NAME) -> Pod:
    return pods.create(name, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_two_control_planes_on_one_account_see_only_their_own_pods(fake: FakePrime) -> None:
    mine, theirs = rent(pods_of(fake, OURS)), rent(pods_of(fake, THEIRS))
    assert (mine.name, theirs.name) == (NAME, NAME)
    assert [(pod.pod_id, pod.name) for pod in pods_of(fake, OURS).list()] == [(mine.pod_id, NAME)]
    assert [(pod.pod_id, pod.name) for pod in pods_of(fake, THEIRS).list()] == [(theirs.pod_id, NAME)]
    assert {pod.order.pod.name for pod in fake.alive} == {f"{NAME}-{OURS.text}", f"{NAME}-{THEIRS.text}"}


def test_a_pod_that_was_asked_for_by_id_has_its_name_back(fake: FakePrime) -> None:
    pods = pods_of(fake, OURS)
    seen = pods.get(rent(pods).pod_id)
    assert seen is not None
    assert seen.name == NAME


def test_a_mark_is_always_the_same_for_one_key() -> None:
    assert Mark.of(b"ours") == OURS
    assert OURS != THEIRS
    assert Mark().without("anything") == "anything"


def test_funds_are_what_is_left_and_what_all_pods_cost_whoever_rented_them(fake: FakePrime) -> None:
    fake.balance_usd = 42.0
    pods = pods_of(fake, OURS)
    first, second = rent(pods), rent(pods_of(fake, THEIRS))
    pods.list()
    funds = account_of(fake, pods).funds()
    assert funds is not None
    assert funds.provider == "prime"
    assert funds.balance_usd == pytest.approx(42.0)
    assert funds.burn_usd_per_hour == pytest.approx(first.usd_per_hour + second.usd_per_hour)


def test_the_wallet_is_asked_for_seldom(fake: FakePrime) -> None:
    clock = Clock()
    account = account_of(fake, pods_of(fake, OURS), clock)
    for _ in range(5):
        account.funds()
    assert len(fake.asked("GET", "/billing/wallet")) == 1
    clock.now_s = FUNDS_S
    fake.balance_usd = 7.0
    funds = account.funds()
    assert funds is not None
    assert funds.balance_usd == 7.0


def test_a_wallet_that_can_not_be_asked_for_is_not_remembered_as_full(fake: FakePrime) -> None:
    clock = Clock()
    account = account_of(fake, pods_of(fake, OURS), clock)
    account.funds()
    clock.now_s = FUNDS_S
    fake.fail(SERVER_ERROR, path="/billing/wallet", times=1000)
    for _ in range(2):
        with pytest.raises(OutsideError):
            account.funds()
    fake.heal()
    with pytest.raises(OutsideError):
        account.funds()
    clock.now_s += FUNDS_S
    assert account.funds() is not None


def test_bills_are_of_our_own_pods_and_told_now_and_then(fake: FakePrime) -> None:
    clock = Clock()
    pods = pods_of(fake, OURS)
    account = account_of(fake, pods, clock)
    mine, theirs = rent(pods), rent(pods_of(fake, THEIRS))
    fake.advance(3600)
    pods.terminate(mine.pod_id)
    pods.terminate(theirs.pod_id)
    assert account.bills() == []
    fake.advance(BILLED_AFTER_S + 1)
    clock.now_s = BILLS_S
    (bill,) = account.bills()
    assert (bill.pod_id, bill.name) == (mine.pod_id, NAME)
    assert bill.usd == pytest.approx(mine.usd_per_hour, rel=0.05)
    assert account.bills() == []
    clock.now_s = 2 * BILLS_S
    assert len(account.bills()) == 1


def test_pods_that_another_wallet_pays_for_do_not_count(fake: FakePrime) -> None:
    pods = pods_of(fake, OURS)
    mine = rent(pods)
    pods.list()
    assert pods.burn_usd_per_hour(fake.pod(mine.pod_id).wallet_id) == pytest.approx(mine.usd_per_hour)
    assert pods.burn_usd_per_hour("wallet-of-a-team") == 0.0


def test_a_key_of_another_account_is_refused_before_anything_looks_gone(fake: FakePrime, tmp_path: Path) -> None:
    (tmp_path / "prime-account").write_text("somebody-else\n")
    pods = PrimePods(client(fake), lambda connection, ticket: None, owner=Owner(client(fake), tmp_path / "prime-account"))
    for ask in (pods.list, lambda: pods.get("abc"), lambda: pods.terminate("abc"), lambda: pods.offers(HARDWARE)):
        with pytest.raises(PermanentError, match="another account"):
            ask()
    assert not fake.asked("DELETE", "/pods/abc")


def test_whose_account_it_is_is_remembered_at_the_first_time(fake: FakePrime, tmp_path: Path) -> None:
    for _ in range(2):
        PrimePods(client(fake), lambda connection, ticket: None, owner=Owner(client(fake), tmp_path / "prime-account")).list()
    assert (tmp_path / "prime-account").read_text().strip()


def test_an_installation_that_failed_is_seen_as_broken(fake: FakePrime) -> None:
    fake.plan = Plan(install_failure="no driver")
    pods = pods_of(fake, OURS)
    seen = pods.get(rent(pods).pod_id)
    assert seen is not None
    assert seen.status.value == "broken"


# -------------------------------------------------------------------------------------------------------------- in the background


class Slow:
    """A pusher that does not return before it is told to, and fails as it is told to."""

    def __init__(self, *errors: OutsideError | None) -> None:
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.errors = list(errors)

    def __call__(self, connection: Connection, ticket: Ticket) -> None:
        self.begun.release()
        assert self.go.wait(30)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error


def test_a_push_takes_its_time_and_is_not_made_twice_at_once() -> None:
    slow = Slow()
    push = BackgroundPusher(slow)
    push(CONNECTION, TICKET)
    assert slow.begun.acquire(timeout=30)
    push(CONNECTION, TICKET)
    slow.go.set()
    push.wait()
    assert not slow.begun.acquire(blocking=False)


def test_what_failed_for_now_is_tried_again_by_itself() -> None:
    slow = Slow(TemporaryError("reset"), TemporaryError("reset"), None)
    slow.go.set()
    push = BackgroundPusher(slow, pauses_s=(0.0, 0.0))
    push(CONNECTION, TICKET)
    push.wait()
    assert [slow.begun.acquire(blocking=False) for _ in range(4)] == [True, True, True, False]


def test_what_failed_for_good_is_raised_once_at_the_next_call() -> None:
    slow = Slow(PermanentError("no Python"))
    slow.go.set()
    push = BackgroundPusher(slow)
    push(CONNECTION, TICKET)
    push.wait()
    with pytest.raises(PermanentError, match="no Python"):
        push(CONNECTION, TICKET)
    push(CONNECTION, TICKET)
    push.wait()
    assert [slow.begun.acquire(blocking=False) for _ in range(3)] == [True, True, False]
