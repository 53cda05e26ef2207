"""The wallet, bills, ownership of pods, and background installs, with a fake Prime Intellect."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.buckets.keys import pod_name
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.install.background import PUSHES_MAX, BackgroundPusher
from prime_train.providers.port import SshAddress
from prime_train.providers.prime.client import PrimeClient
from prime_train.providers.prime.pods import PrimePods
from prime_train.providers.prime.provider import (
    ACCOUNT,
    BILLED_AFTER_S,
    BILLS_S,
    FUNDS_S,
    WORDS,
    PrimeAccount,
    account_names,
)
from prime_train.providers.prime.settings import PrimeSettings
from prime_train.providers.rental.account_check import InFile, InStore, Memory, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.runs.run import Run, RunState
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.memory import MemoryStore
from tests import builders as b
from tests.builders import is_gone
from tests.fakes.http import ALWAYS, Response
from tests.fakes.prime import ALL, SERVER_ERROR, ApiKey, End, FakePrime, Plan, Team
from tests.waiting import HANG_S

NAME = "pt-tiny-1-e1"
HARDWARE = HardwareSpec(gpus=("A100",), disk_gib=50)
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
CONNECTION = SshAddress("p1", "root", "127.0.0.1", 9)
OURS, THEIRS = PodMark.of(b"ours"), PodMark.of(b"theirs")


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path, machines=False) as fake:
        yield fake


def client(fake: FakePrime) -> PrimeClient:
    return PrimeClient(PrimeSettings(fake.api_key, base_url=fake.url))


def pods_of(fake: FakePrime, mark: PodMark) -> PrimePods:
    return PrimePods(client(fake), lambda connection, ticket: None, mark=mark)


def account_of(fake: FakePrime, pods: PrimePods, clock: Callable[[], float] | None = None) -> PrimeAccount:
    """Return the account, which uses the fake's time of day."""
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


def test_a_pod_that_was_requested_by_id_has_its_name_back(fake: FakePrime) -> None:
    pods = pods_of(fake, OURS)
    seen = pods.get(rent(pods).pod_id)
    assert seen is not None
    assert seen.name == NAME


def test_a_mark_is_always_the_same_for_one_key() -> None:
    assert PodMark.of(b"ours") == OURS
    assert OURS != THEIRS
    assert PodMark().without("anything") == "anything"


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


def test_the_wallet_is_requested_seldom(fake: FakePrime) -> None:
    clock = Clock()
    account = account_of(fake, pods_of(fake, OURS), clock)
    for _ in range(5):
        account.funds()
    assert len(fake.requests_to("GET", "/billing/wallet")) == 1
    clock.now_s = FUNDS_S
    fake.balance_usd = 7.0
    funds = account.funds()
    assert funds is not None
    assert funds.balance_usd == 7.0


def test_a_wallet_that_cannot_be_requested_is_not_remembered_as_full(fake: FakePrime) -> None:
    clock = Clock()
    account = account_of(fake, pods_of(fake, OURS), clock)
    account.funds()
    clock.now_s = FUNDS_S
    fake.fail(SERVER_ERROR, path="/billing/wallet", times=1000)
    for _ in range(2):
        with pytest.raises(ExternalError):
            account.funds()
    fake.heal()
    with pytest.raises(ExternalError):
        account.funds()
    clock.now_s += FUNDS_S
    assert account.funds() is not None


@pytest.mark.parametrize("usd", [-1e9, 1e308])
def test_a_bill_that_cannot_be_one_is_not_booked_and_hides_no_other(fake: FakePrime, usd: float) -> None:
    clock = Clock()
    pods = pods_of(fake, OURS)
    account = account_of(fake, pods, clock)
    unusual, mine = rent(pods), rent(pods)
    fake.advance(3600)
    pods.terminate(unusual.pod_id)
    pods.terminate(mine.pod_id)
    fake.advance(BILLED_AFTER_S + 1)
    fake.pod(unusual.pod_id).billed_usd = usd
    clock.now_s = BILLS_S
    assert [bill.pod_id for bill in account.bills()] == [mine.pod_id]


def test_bills_are_of_our_own_pods_and_reported_now_and_then(fake: FakePrime) -> None:
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


def guarded(fake: FakePrime, memory: Memory, key: str = "", *, team: str = "", named: str = "") -> PrimePods:
    """Return the checked account of a new process, which has made no request yet."""
    requested = PrimeClient(PrimeSettings(key or fake.api_key, team, base_url=fake.url))
    return PrimePods(
        requested,
        lambda connection, ticket: None,
        owner=Owner(lambda: account_names(requested), memory, WORDS, named=named),
    )


def key_of_bob(fake: FakePrime, scope: Mapping[str, frozenset[str]] = ALL) -> str:
    fake.world.api_keys["pit_of_bob"] = ApiKey("bob", scope)
    return "pit_of_bob"


def on_prime(state: RunState) -> Run:
    """Return a run in this state whose machines are Prime's."""
    run = b.run(state)
    return replace(
        run,
        attempts=tuple(
            replace(attempt, offer=replace(attempt.offer, provider="prime")) for attempt in run.attempts
        ),
    )


def remembering(account: str, *runs: Run) -> MemoryStore:
    store = MemoryStore()
    store.save_watch(replace(store.watch(), version=1, accounts={"prime": account}), version=0)
    for run in runs:
        store.create(run)
    return store


def test_a_key_of_another_account_is_refused_before_anything_looks_gone(
    fake: FakePrime, tmp_path: Path
) -> None:
    (tmp_path / "prime-account").write_text("somebody-else\n")
    pods = guarded(fake, InFile(tmp_path / "prime-account"))
    (offer, *_) = rank(pods.offers(HARDWARE), HARDWARE).best
    for ask in (
        pods.list,
        lambda: pods.get("abc"),
        lambda: pods.terminate("abc"),
        lambda: pods.create(NAME, offer, HARDWARE),
    ):
        with pytest.raises(PermanentError, match="another account"):
            ask()
    assert not fake.alive


def test_a_machine_is_given_back_whoever_the_key_is_reported_to_be_of(
    fake: FakePrime, tmp_path: Path
) -> None:
    pod = rent(guarded(fake, InFile(tmp_path / "prime-account")))
    (tmp_path / "prime-account").write_text("somebody-else\n")
    guarded(fake, InFile(tmp_path / "prime-account")).terminate(pod.pod_id)
    assert not fake.alive


ODD_WHOAMI = [
    SERVER_ERROR,
    Response(200, b"{}"),
    Response(200, b"<html>"),
    Response(200, b'{"data": {"id": 7}}'),
    Response(403, b'{"detail": "no"}'),
]


@pytest.mark.parametrize("unusual", ODD_WHOAMI)
def test_a_whoami_that_fails_or_is_unusual_keeps_no_machine_from_being_seen_and_given_back(
    fake: FakePrime, tmp_path: Path, unusual: Response
) -> None:
    memory = InFile(tmp_path / "prime-account")
    pod = rent(guarded(fake, memory))
    fake.fail(unusual, path="/user/whoami", times=ALWAYS)
    pods = guarded(fake, memory)
    assert [seen.pod_id for seen in pods.list()] == [pod.pod_id]
    assert pods.get(pod.pod_id) is not None
    pods.terminate(pod.pod_id)
    assert not fake.alive
    assert is_gone(pods.get(pod.pod_id))


def test_while_it_is_not_known_whose_the_key_is_an_id_that_is_not_known_is_not_gone(
    fake: FakePrime, tmp_path: Path
) -> None:
    memory = InFile(tmp_path / "prime-account")
    pod = rent(guarded(fake, memory))
    fake.preempt(pod.pod_id, End.MISSING)
    fake.fail(SERVER_ERROR, path="/user/whoami", times=ALWAYS)
    with pytest.raises(TemporaryError, match="whoami"):
        guarded(fake, memory).get(pod.pod_id)
    with pytest.raises(TemporaryError, match="whoami"):
        guarded(fake, memory).terminate(pod.pod_id)
    fake.heal()
    assert is_gone(guarded(fake, memory).get(pod.pod_id))


def test_whose_account_it_is_is_remembered_when_a_machine_is_rented(fake: FakePrime, tmp_path: Path) -> None:
    memory = InFile(tmp_path / "prime-account")
    assert guarded(fake, memory).list() == []
    assert not memory.file.exists()
    pod = rent(guarded(fake, memory))
    assert memory.read() == "user-1"
    assert [seen.pod_id for seen in guarded(fake, memory).list()] == [pod.pod_id]
    with pytest.raises(PermanentError, match=r"another account.*delete .*prime-account"):
        guarded(fake, memory, key_of_bob(fake)).list()


def test_watchers_without_a_folder_of_their_own_remember_it_in_the_store(fake: FakePrime) -> None:
    store = MemoryStore()
    rent(guarded(fake, InStore(store, "prime")))
    assert store.watch().accounts.get("prime", "") == "user-1"
    store.create(on_prime(RunState.TRAINING))
    with pytest.raises(PermanentError, match=r"another account.*stop the runs"):
        guarded(fake, InStore(store, "prime"), key_of_bob(fake)).list()
    assert store.watch().accounts.get("prime", "") == "user-1"


def test_another_account_is_welcome_where_no_machine_is_left(fake: FakePrime) -> None:
    store = remembering("somebody-else", on_prime(RunState.SUCCEEDED))
    pods = guarded(fake, InStore(store, "prime"))
    assert pods.list() == []
    rent(pods)
    assert store.watch().accounts.get("prime", "") == "user-1"


def test_the_attempt_that_a_machine_is_rented_for_is_not_in_its_own_way(fake: FakePrime) -> None:
    store = remembering("somebody-else", on_prime(RunState.LAUNCHING))
    rent(guarded(fake, InStore(store, "prime")), pod_name(b.RUN_ID, 1))
    assert store.watch().accounts.get("prime", "") == "user-1"


def test_who_looks_at_what_is_for_rent_with_another_key_locks_nobody_out(fake: FakePrime) -> None:
    store = MemoryStore()
    watcher = guarded(fake, InStore(store, "prime"))
    watcher.list()
    assert guarded(fake, InStore(store, "prime"), key_of_bob(fake)).offers(HARDWARE)
    assert store.watch().accounts.get("prime", "") == ""
    store.create(on_prime(RunState.LAUNCHING))
    pod = rent(watcher, pod_name(b.RUN_ID, 1))
    assert guarded(fake, InStore(store, "prime"), key_of_bob(fake)).offers(HARDWARE)
    cold = guarded(fake, InStore(store, "prime"))
    assert [seen.pod_id for seen in cold.list()] == [pod.pod_id]
    cold.terminate(pod.pod_id)
    assert not fake.alive


def test_a_watcher_that_was_sure_once_notices_that_another_account_rents_now(fake: FakePrime) -> None:
    store = MemoryStore()
    warm = guarded(fake, InStore(store, "prime"))
    warm.list()
    (offer, *_) = rank(warm.offers(HARDWARE), HARDWARE).best
    rent(guarded(fake, InStore(store, "prime"), key_of_bob(fake)), pod_name(b.RUN_ID, 1))
    store.create(on_prime(RunState.TRAINING))
    for ask in (lambda: warm.create("pt-other-1-e1", offer, HARDWARE), warm.list):
        with pytest.raises(PermanentError, match="another account"):
            ask()
    assert store.watch().accounts.get("prime", "") == "bob"
    assert len(fake.alive) == 1


def test_somebody_else_of_the_team_that_pays_may_take_over(fake: FakePrime) -> None:
    fake.add_team(Team("team-1"))
    store = MemoryStore()
    pod = rent(guarded(fake, InStore(store, "prime"), team="team-1"))
    store.create(on_prime(RunState.TRAINING))
    theirs = guarded(fake, InStore(store, "prime"), key_of_bob(fake), team="team-1")
    assert [seen.pod_id for seen in theirs.list()] == [pod.pod_id]
    theirs.terminate(pod.pod_id)
    assert not fake.alive


def test_to_name_the_team_is_not_to_be_of_it(fake: FakePrime) -> None:
    fake.add_team(Team("team-1"))
    store = MemoryStore()
    rent(guarded(fake, InStore(store, "prime"), team="team-1"))
    store.create(on_prime(RunState.TRAINING))
    no_wallet = {name: deeds for name, deeds in ALL.items() if name != "billing"}
    for pods in (
        guarded(fake, InStore(store, "prime"), key_of_bob(fake, no_wallet), team="team-1"),
        guarded(fake, InStore(store, "prime")),
    ):
        with pytest.raises(PermanentError, match="another account"):
            pods.list()


def test_a_person_who_was_remembered_before_teams_were_goes_on_for_the_team(fake: FakePrime) -> None:
    fake.add_team(Team("team-1"))
    store = remembering("user-1", on_prime(RunState.TRAINING))
    pods = guarded(fake, InStore(store, "prime"), team="team-1")
    rent(pods, "pt-other-1-e1")
    assert store.watch().accounts.get("prime", "") == "user-1"
    with pytest.raises(PermanentError, match="another account"):
        guarded(fake, InStore(store, "prime"), key_of_bob(fake), team="team-1").list()
    store = remembering("user-1", on_prime(RunState.SUCCEEDED))
    rent(guarded(fake, InStore(store, "prime"), team="team-1"), "pt-other-1-e2")
    assert store.watch().accounts.get("prime", "") == "team:team-1"


def test_a_lost_account_can_be_given_up_by_naming_the_new_one(fake: FakePrime) -> None:
    store = remembering("somebody-else", on_prime(RunState.TRAINING))
    with pytest.raises(PermanentError, match=f"{ACCOUNT}=user-1"):
        guarded(fake, InStore(store, "prime")).list()
    with pytest.raises(PermanentError, match="another account"):
        guarded(fake, InStore(store, "prime"), key_of_bob(fake), named="user-1").list()
    pods = guarded(fake, InStore(store, "prime"), named="user-1")
    assert pods.list() == []
    pod = rent(pods, pod_name(b.RUN_ID, 2))
    assert [seen.pod_id for seen in guarded(fake, InStore(store, "prime")).list()] == [pod.pod_id]


def test_what_others_write_into_the_memory_meanwhile_is_not_lost(fake: FakePrime) -> None:
    store = MemoryStore()
    memory = InStore(store, "prime")
    assert not memory.write("user-1", before="bob")
    store.save_watch(replace(store.watch(), version=1, last_sweep_s=5), version=0)
    rent(guarded(fake, memory))
    assert (store.watch().accounts["prime"], store.watch().last_sweep_s) == ("user-1", 5)


def test_the_variable_reaches_the_watcher_of_a_home(fake: FakePrime, tmp_path: Path) -> None:
    (tmp_path / "prime-account").write_text("somebody-else\n")
    environment = {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url}
    with pytest.raises(PermanentError, match="another account"):
        Home(tmp_path, environment).providers().of("prime").pods().list()
    assert Home(tmp_path, {**environment, ACCOUNT: "user-1"}).providers().of("prime").pods().list() == []


def test_an_installation_that_failed_is_seen_as_broken(fake: FakePrime) -> None:
    fake.plan = Plan(install_failure="no driver")
    pods = pods_of(fake, OURS)
    seen = pods.get(rent(pods).pod_id)
    assert seen is not None
    assert seen.status.value == "broken"


# ------------------------------------------------------------------------------------------------------------
# in the background


class Slow:
    """A pusher that returns only when the test tells it to, and fails if the test tells it to."""

    def __init__(self, *errors: ExternalError | None) -> None:
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.errors = list(errors)

    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        self.begun.release()
        assert self.go.wait(HANG_S)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error


def test_a_push_takes_its_time_and_is_not_made_twice_at_once() -> None:
    slow = Slow()
    push = BackgroundPusher(slow)
    push(CONNECTION, TICKET)
    assert slow.begun.acquire(timeout=HANG_S)
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


def test_who_has_no_more_time_waits_no_longer_and_the_next_call_begins_anew() -> None:
    slow = Slow()
    push = BackgroundPusher(slow)
    push(CONNECTION, TICKET)
    assert slow.begun.acquire(timeout=HANG_S)
    assert not push.wait(0.01)
    push.leave()
    assert push.wait(0.0)
    push(CONNECTION, TICKET)
    assert slow.begun.acquire(timeout=HANG_S)
    slow.go.set()
    assert push.wait(HANG_S)


def test_what_was_left_is_not_tried_again_and_keeps_nobody_from_a_place() -> None:
    stuck, free = Slow(*[TemporaryError("reset")] * PUSHES_MAX), threading.Event()

    def pusher(connection: SshAddress, ticket: Ticket) -> None:
        free.set() if ticket.run == "late-1" else stuck(connection, ticket)

    push = BackgroundPusher(pusher, pauses_s=(0.0, 0.0))
    for number in range(PUSHES_MAX):
        push(CONNECTION, TICKET.model_copy(update={"run": f"stuck-{number}"}))
    assert all(stuck.begun.acquire(timeout=HANG_S) for _ in range(PUSHES_MAX))
    threads = [thread for thread in threading.enumerate() if thread.name == f"push-{CONNECTION.pod_id}"]
    push.leave()
    push(CONNECTION, TICKET.model_copy(update={"run": "late-1"}))
    assert free.wait(HANG_S)
    stuck.go.set()
    for thread in threads:
        thread.join(HANG_S)
    assert not stuck.begun.acquire(blocking=False)


def test_a_failure_for_good_is_reported_once_without_another_call() -> None:
    slow = Slow(PermanentError("no Python"), TemporaryError("reset"))
    slow.go.set()
    push = BackgroundPusher(slow, pauses_s=())
    assert push.failure() is None
    push(CONNECTION, TICKET)
    push.wait()
    push(CONNECTION, TICKET.model_copy(update={"attempt": 2}))
    push.wait()
    failure = push.failure()
    assert failure is not None
    assert (failure.run_id, failure.attempt, str(failure.error)) == ("tiny-1", 1, "no Python")
    assert push.failure() is None


def test_machines_of_another_provider_do_not_bind_to_the_account(fake: FakePrime) -> None:
    store = remembering("somebody-else", b.run(RunState.TRAINING))
    rent(guarded(fake, InStore(store, "prime")))
    assert store.watch().accounts == {"prime": "user-1"}
