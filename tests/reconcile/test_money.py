"""Wallets and bills, and providers that this control plane cannot query."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from prime_train.errors import ExternalError, NoFunds, PermanentError, TemporaryError
from prime_train.runs.funds import Bill, Funds
from prime_train.runs.ledger import spent
from prime_train.runs.run import RunState
from prime_train.runs.wire import Order
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.reconcile.ports import Outside

PROVIDER = "memory"


@dataclass
class Paying:
    """An account with values set by the test."""

    message: Funds | None = None
    bill: list[Bill] = field(default_factory=list)
    error: ExternalError | None = None

    @property
    def provider(self) -> str:
        return PROVIDER

    def funds(self) -> Funds | None:
        if self.error is not None:
            raise self.error
        return self.message

    def bills(self) -> Sequence[Bill]:
        if self.error is not None:
            raise self.error
        return self.bill


def paid() -> tuple[Outside, Paying]:
    w, account = Outside(), Paying()
    w.world = replace(w.world, accounts=(account,))
    return w, account


def test_training_is_saved_before_the_wallet_is_empty_and_goes_on_when_it_is_filled() -> None:
    w, account = paid()
    w.trains()
    attempt = w.run().current_attempt
    assert attempt is not None
    account.message = Funds(attempt.offer.provider, 0.2, 1.0)
    w.after(20).heartbeat(step=11)
    w.after(60).sweep()
    assert w.heartbeat(step=12).order is Order.DRAIN
    w.save_checkpoint(12)
    w.exit(Cause.STOPPED_GRACEFULLY, step=12)
    w.after(5).sweep()
    assert (w.run().state, w.living()) == (RunState.QUEUED, [])
    assert w.run().why == ""
    assert [kind for kind in w.reported.kinds() if kind in ("draining", "lost")] == ["draining", "lost"]

    account.message = Funds(attempt.offer.provider, 50.0, 0.0)
    w.sweeps(120)
    assert w.living() == [f"pt-{b.RUN_ID}-e2"]
    assert w.run().resume is not None


def test_runs_that_are_launched_in_one_sweep_share_what_is_in_the_wallet() -> None:
    w, account = paid()
    hardware = {"provider": "local", "usd_per_hour_max": 0.7}
    for number in range(3):
        w.add(f"more-{number}", {"hardware": hardware})
    w.pods.called = "local"
    account.message = Funds("local", 1.8, 0.0)
    w.sweep()
    assert [name for name in w.living() if "more" in name] == ["pt-more-0-e1", "pt-more-1-e1"]


def test_a_machine_that_the_account_does_not_show_yet_is_paid_by_the_wallet_all_the_same() -> None:
    w, account = paid()
    w.trains()
    attempt = w.run().current_attempt
    assert attempt is not None
    usd = attempt.offer.usd_per_hour
    for burn in (usd, 0.0, usd, 0.0):  # the list of machines is cut short now and then
        account.message = Funds(attempt.offer.provider, 1.5 * usd, burn)
        w.after(20).heartbeat(step=11)
        w.after(1).sweep()
    assert w.reported.kinds().count("funds") == 1


def test_an_account_that_cannot_be_queried_changes_nothing() -> None:
    w, account = paid()
    w.trains()
    account.error = TemporaryError("503")
    w.after(20).heartbeat(step=11)
    w.sweep()
    assert w.run().state is RunState.TRAINING
    assert {"FundsUnknown", "BillsUnknown"} <= set(w.received)


def test_an_order_that_nobody_pays_for_is_made_again_later_and_reported_once() -> None:
    w = Outside()
    w.fail["create"] = NoFunds("402: the wallet has not enough credit")
    w.sweeps(300)
    assert w.reported.kinds().count("funds") == 1
    assert 2 <= len(w.done("create")) <= 6
    del w.fail["create"]
    w.sweeps(600)
    assert w.run().state is RunState.BOOTING


def test_what_was_billed_takes_the_place_of_what_was_reckoned() -> None:
    w, account = paid()
    w.trains()
    first = w.run().current_attempt
    assert first is not None
    assert first.pod_id is not None
    w.after(3600).heartbeat(step=50)
    w.pods.real.terminate(first.pod_id)
    w.sweeps(120)
    before = spent(w.run(), w.now_s).usd
    account.bill = [
        Bill(first.pod_id, f"pt-{b.RUN_ID}-e1", 7.25),
        Bill("x", "pt-nobody-e1", 9.0),
        Bill("y", "not ours", 9.0),
    ]
    w.sweep()
    w.sweep()
    assert [a.billed_usd for a in w.run().attempts] == [7.25, None]
    assert spent(w.run(), w.now_s).usd == pytest.approx(
        before - first.offer.usd_per_hour * 3725 / 3600 + 7.25, abs=0.05
    )
    assert [line.text for line in w.store.history(b.RUN_ID) if line.kind == "billed"] == [
        "attempt 1 was billed at $7.25"
    ]


def test_a_machine_that_is_still_there_is_not_billed_yet() -> None:
    w, account = paid()
    w.trains()
    attempt = w.run().current_attempt
    assert attempt is not None
    assert attempt.pod_id is not None
    account.bill = [Bill(attempt.pod_id, f"pt-{b.RUN_ID}-e1", 7.25)]
    w.sweep()
    assert w.run().attempts[0].billed_usd is None


def test_what_the_provider_charges_in_the_end_is_what_is_reckoned_with() -> None:
    w = Outside()
    w.pods.charges = 1.23
    w.settle()
    assert w.run().attempts[0].offer.usd_per_hour == 1.23


def test_where_the_provider_of_a_run_cannot_be_queried_its_machine_is_not_given_up() -> None:
    w = Outside().trains()
    w.world = replace(w.world, providers=frozenset({"elsewhere"}))
    w.pods.real.terminate(w.run().attempts[0].pod_id or "")
    w.sweeps(1200)
    assert w.run().attempt == 1
    assert w.run().state is RunState.TRAINING
    assert "unknown" in w.reported.kinds()


def test_a_machine_on_which_the_agent_can_never_run_is_given_back_at_once() -> None:
    w = Outside()
    w.fail["put_agent"] = PermanentError("no Python and no curl")
    w.settle()
    attempt = w.run().attempts[0]
    assert (attempt.cause, attempt.detail) == (Cause.PREFLIGHT_FAILED, "no Python and no curl")
    assert w.run().excluded == (attempt.offer.offer_id,)
