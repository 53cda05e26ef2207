"""A run that several providers may carry: which one is asked, what happens if it cannot, and what one says
about the pods of others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from prime_train.errors import NoCapacity, NoFunds, TemporaryError
from prime_train.providers.by_name import PodsByProvider
from prime_train.providers.memory import MemoryPods
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.breaker import State
from prime_train.runs.funds import Bill, Funds
from prime_train.runs.offer import Offer
from prime_train.runs.run import RunState
from prime_train.runs.verdict import Pod
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec
from prime_train.watch.observe import see
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.reconcile.ports import Outside


class Market(MemoryPods):
    """One provider of several. `error` is raised by its create call, `down` by its other calls, `unlisted` by
    its list, `unasked` by its answers about single machines. `deaf`: it ignores terminate calls. `hangs`:
    called before `down` is raised. `asked`: how often it was asked for offers.
    """

    error: Exception | None = None
    down: Exception | None = None
    unlisted: Exception | None = None
    unasked: Exception | None = None
    deaf = False
    hangs: Callable[[], object] | None = None
    asked = 0

    def offers(self, hardware: HardwareSpec) -> list[Offer]:
        self.asked += 1
        self._fail()
        return list(super().offers(hardware))

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        if self.error is not None:
            raise self.error
        return super().create(name, offer, hardware)

    def list(self) -> "list[Pod]":
        if self.unlisted is not None:
            raise self.unlisted
        self._fail()
        return list_of(super().list())

    def get(self, pod_id: str) -> Pod | None:
        if self.unasked is not None:
            raise self.unasked
        self._fail()
        return super().get(pod_id)

    def terminate(self, pod_id: str) -> None:
        if not self.deaf:
            super().terminate(pod_id)

    def _fail(self) -> None:
        if self.down is not None:
            if self.hangs is not None:
                self.hangs()
            raise self.down


list_of = list


@dataclass
class Wallet:
    provider: str
    balance_usd: float
    sent: list[Bill] = field(default_factory=list)

    def funds(self) -> Funds:
        return Funds(self.provider, self.balance_usd, 0.0)

    def bills(self) -> list[Bill]:
        return self.sent


def two_markets() -> tuple[Outside, Market, Market]:
    """Return an environment with the providers prime, which is cheaper, and other."""
    w = Outside()
    prime = Market(offers=[Offer("prime", "p-1", 0.5, spot=True, disk_gib=1000)], clock=lambda: w.now_s)
    other = Market(offers=[Offer("other", "o-1", 0.9, spot=True, disk_gib=1000)], clock=lambda: w.now_s)
    w.world = replace(w.world, pods=PodsByProvider({"prime": prime, "other": other}, ("prime", "other")))
    return w, prime, other


def history(w: Outside) -> str:
    return "\n".join(line.text for line in w.store.history(b.RUN_ID))


def test_where_the_cheapest_has_no_stock_the_run_trains_elsewhere_within_ten_seconds_and_the_history_tells_why() -> (
    None
):
    w, prime, other = two_markets()
    prime.error = NoCapacity("no such machine is left")
    w.settle()
    assert (w.run().cause, len(other.list())) == (Cause.NO_CAPACITY, 0)
    w.after(10).settle()
    assert [pod.name for pod in other.list()] == [f"pt-{b.RUN_ID}-e2"]
    assert "p-1" not in w.run().attempts[-1].offer.offer_id
    assert "no such machine is left" in history(w)
    assert "from other" in history(w)


def test_a_provider_that_does_not_answer_keeps_no_run_from_the_offers_of_others() -> None:
    w, prime, other = two_markets()
    prime.down = TemporaryError("503")
    w.settle()
    assert (len(prime._rented), len(other.list())) == (0, 1)


def test_a_provider_whose_list_fails_is_not_rented_from_while_there_is_another_and_is_again_when_it_answers() -> (
    None
):
    w, prime, other = two_markets()
    prime.unlisted = TemporaryError("503")
    w.settle()
    assert (prime.asked, len(prime._rented), len(other.list())) == (0, 0, 1)
    prime.unlisted, other.error = None, NoCapacity("sold out")
    for pod in other.list():
        other.preempt(pod.pod_id)
    w.sweeps(300)
    assert w.run().attempts[-1].offer.provider == "prime"


def test_a_machine_whose_own_provider_was_down_gets_its_agent_before_it_counts_as_late_and_those_of_others_do_not_wait() -> (
    None
):
    w, prime, _ = two_markets()
    w.world = replace(w.world, providers={"prime", "other"})
    w.settle()
    launched_s = w.run().attempts[0].launched_s
    prime.unlisted = TemporaryError("503")
    w.sweeps(1200)
    watch = w.store.watch()
    assert set(watch.down_since_s) == {"prime"}
    assert watch.provider.state is State.CLOSED
    assert w.run().attempt == 1, "no watcher could tell whether it needs an agent"
    prime.unlisted = None
    w.after(30).sweep()
    hearing = see(w.world, w.now_s).hearing
    assert hearing.boot_since_s(launched_s, "prime") > launched_s
    assert hearing.boot_since_s(launched_s, "other") <= launched_s
    assert w.store.watch().down_since_s == {}


def test_a_machine_whose_provider_does_not_answer_is_not_replaced_while_one_of_another_is() -> None:
    w, prime, other = two_markets()
    w.trains()
    w.add("second")
    prime.error = NoCapacity("sold out")
    w.settle("second")
    w.after(10).trains("second")
    assert [len(prime.list()), len(other.list())] == [1, 1]
    prime.down = TemporaryError("503")
    for pod in other.list():
        other.preempt(pod.pod_id)
    w.after(60).sweep()
    assert w.run("second").attempts[1].cause is Cause.PREEMPTED
    w.sweeps(1800)
    assert (w.run().attempt, w.run().state) == (1, RunState.TRAINING), "its machine may well be alive"


def test_a_run_whose_last_provider_fails_before_its_machine_is_seen_gone_trains_elsewhere() -> None:
    w, prime, other = two_markets()
    w.trains()
    w.exit(Cause.PREEMPTED)
    prime.down = TemporaryError("503")
    w.sweeps(60)
    assert [pod.name for pod in other.list()] == [f"pt-{b.RUN_ID}-e2"]
    assert w.run().attempts[0].ended_s is None, "nobody knows whether it is gone"
    prime.down = None
    w.sweeps(60)
    assert w.run().attempts[0].ended_s is not None


def moved_away_from_a_deaf_provider() -> tuple[Outside, Market, Market]:
    """Return a run on a machine of other that boots, while its old machine at prime lives, because prime
    ignores terminate calls.
    """
    w, prime, other = two_markets()
    w.trains()
    prime.deaf = True
    prime.set_stock("p-1", 0)
    w.exit(Cause.PREEMPTED)
    w.settle()
    assert [attempt.offer.provider for attempt in w.run().attempts] == ["prime", "other"]
    return w, prime, other


def test_an_old_machine_goes_also_while_the_provider_of_the_current_one_does_not_answer() -> None:
    w, prime, other = moved_away_from_a_deaf_provider()
    other.down = TemporaryError("503")
    prime.deaf = False
    w.sweeps(60)
    assert (prime.list(), w.run().attempts[0].ended_s is not None) == ([], True)
    assert (len(other._rented), w.run().attempt, w.run().state) == (1, 2, RunState.BOOTING), (
        "its machine may well be alive"
    )


def test_an_old_machine_goes_also_while_the_current_one_cannot_be_queried() -> None:
    w, prime, other = moved_away_from_a_deaf_provider()
    other.unasked = TemporaryError("503")
    prime.deaf = False
    w.sweeps(60)
    assert (prime.list(), w.run().attempts[0].ended_s is not None) == ([], True)
    assert (w.run().attempt, w.run().state) == (2, RunState.BOOTING)


def test_a_lost_machine_is_replaced_while_the_provider_of_an_old_one_takes_minutes_not_to_answer() -> None:
    w, prime, other = moved_away_from_a_deaf_provider()
    w.trains()
    prime.down, prime.hangs = TemporaryError("no answer within 30 s, thrice"), lambda: w.after(90)
    for pod in other.list():
        other.preempt(pod.pod_id)
    for _ in range(10):
        sweep(w.world, clock=lambda: w.after(15).now_s)
    assert w.run().attempts[1].cause is Cause.PREEMPTED


def test_a_machine_whose_final_price_is_above_the_highest_one_is_given_back_before_it_trains() -> None:
    w = Outside({"hardware": {"usd_per_hour_max": 2.0}})
    w.pods.charges = 2.5
    w.settle()
    w.after(60).sweep()
    assert (w.run().attempts[0].cause, w.done("put_agent")) == (Cause.LAUNCH_REFUSED, [])
    assert "costs $2.50/h, above hardware.usd_per_hour_max 2.00" in history(w)
    assert w.done("terminate")[0] == f"terminate {w.run().attempts[0].pod_id}"


def test_an_orphan_at_a_provider_that_answers_is_terminated_although_another_does_not() -> None:
    w, prime, other = two_markets()
    other.create("pt-unknown-e1", other.offers(b.spec().hardware)[0], b.spec().hardware)
    prime.down = TemporaryError("503")
    w.sweep()
    assert [pod.name for pod in other.list()] == [f"pt-{b.RUN_ID}-e1"], "the run's own machine, and no other"


def test_an_empty_wallet_sends_the_run_to_the_provider_whose_wallet_is_not() -> None:
    w, prime, other = two_markets()
    w.world = replace(w.world, accounts=(Wallet("prime", 0.05), Wallet("other", 80.0)))
    w.settle()
    assert [len(prime.list()), len(other.list())] == [0, 1]


def test_an_empty_wallet_pays_for_no_boot_where_the_provider_with_money_has_no_machine() -> None:
    w, prime, other = two_markets()
    sold_out, other._offers = other._offers, {}
    w.world = replace(w.world, accounts=(Wallet("prime", 0.05), Wallet("other", 80.0)))
    w.sweeps(1800)
    assert (prime._rented, w.run().attempt) == ({}, 0)
    assert w.reported.kinds() == [AlertKind.FUNDS.value]
    assert "$0.05 at prime" in history(w)
    other._offers = sold_out
    w.after(600).settle()
    assert [len(prime._rented), len(other.list())] == [0, 1]


def test_a_provider_that_refuses_for_lack_of_credit_is_asked_again_only_after_the_others() -> None:
    w, prime, other = two_markets()
    prime.error = NoFunds("no credit")
    w.settle()
    w.after(15).settle()
    assert [attempt.offer.provider for attempt in w.run().attempts] == ["prime", "other"]
    assert len(other.list()) == 1


def test_bills_of_all_providers_are_entered() -> None:
    w, prime, other = two_markets()
    wallets = Wallet("prime", 50.0), Wallet("other", 50.0)
    w.world = replace(w.world, accounts=wallets)
    w.trains()
    for pod in prime.list():
        prime.preempt(pod.pod_id)
    prime.error = NoCapacity("sold out")
    w.sweeps(60)
    w.trains()
    for pod in other.list():
        other.preempt(pod.pod_id)
    w.sweeps(60)
    ended = [attempt for attempt in w.run().attempts if attempt.pod_id and attempt.ended_s is not None]
    for wallet, attempt in zip(wallets, ended, strict=True):
        wallet.sent.append(
            Bill(attempt.pod_id or "", f"pt-{b.RUN_ID}-e{attempt.number}", 7.0, attempt.launched_s, w.now_s)
        )
    w.sweep()
    assert [a.billed_usd for a in w.run().attempts if a.pod_id and a.ended_s is not None] == [7.0, 7.0]


def test_a_machine_that_failed_for_one_run_is_passed_over_for_the_next_and_the_history_tells_why() -> None:
    w = Outside()
    bad = Offer("prime", "p-1", 0.5, spot=False, disk_gib=1000, machine="m-1")
    good = replace(bad, offer_id="p-2", usd_per_hour=0.9, machine="m-2")
    prime = Market(offers=[bad, good], clock=lambda: w.now_s)
    w.world = replace(w.world, pods=PodsByProvider({"prime": prime}, ("prime",)))
    w.trains()
    w.exit(Cause.GPU_HARDWARE)
    w.after(120).settle()
    w.add("second")
    w.settle("second")
    assert [attempt.offer.offer_id for attempt in w.run("second").attempts] == ["p-2"]
    (launching,) = [line.text for line in w.store.history("second") if line.kind == "launching"]
    assert "passed over: machine m-1 of prime: GPU hardware fault, last" in launching
    assert "until 2" in launching or "until 1970" in launching
    prime.set_stock("p-2", 0)
    w.add("third")
    w.settle("third")
    (launching,) = [line.text for line in w.store.history("third") if line.kind == "launching"]
    assert "rented although machine m-1 of prime" in launching
