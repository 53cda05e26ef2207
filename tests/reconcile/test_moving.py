"""A run that trains while a cheaper machine is for rent: it is proposed, or the run saves and moves there."""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.errors import TemporaryError
from prime_train.market.move_decision import MOVE_EVERY_S, TRAINED_S_MIN
from prime_train.providers.memory import MemoryPods
from prime_train.runs import change as c
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.offer import Offer
from prime_train.runs.run import DesiredState, DrainReason, Run, RunState
from prime_train.runs.wire import Order, Phase
from prime_train.spec.causes import Cause
from prime_train.watch.moves import LOOK_EVERY_S
from tests import builders as b
from tests.reconcile.ports import Outside

DEAR = Offer("memory", "dear", 6.0, spot=False, gpu="H100_80GB", gpu_count=1, gpu_gb=80, disk_gib=1000)
CHEAP = replace(DEAR, offer_id="cheap", usd_per_hour=2.0)
CHEAPEST = replace(DEAR, offer_id="cheapest", usd_per_hour=0.5)
MIDDLE = replace(DEAR, offer_id="middle", usd_per_hour=3.0)
LITTLE = replace(DEAR, offer_id="little", usd_per_hour=5.95)
OTHER = replace(DEAR, offer_id="other", usd_per_hour=0.5, gpu="A100_80GB")
ALL = (DEAR, CHEAP, CHEAPEST, MIDDLE, LITTLE, OTHER)
SPEC: dict[str, Any] = {
    "trainer": {"kind": "torchrun", "command": "train.py", "steps": 20_000},
    "hardware": {"gpus": ["H100_80GB", "A100_80GB"], "migrate": "auto"},
    "budget": {"usd": 500},
}


def training(*, step_s: float = 4.0, **changes: Any) -> Outside:
    """Return a run that has trained on the dear machine for a while, and now the cheap one is for rent."""
    w = Outside({name: section | changes.get(name, {}) for name, section in SPEC.items()})
    w.pods.real = MemoryPods(offers=ALL, clock=lambda: w.now_s)
    for_rent(w, DEAR)
    w.trains()
    seconds = TRAINED_S_MIN + 60
    w.after(seconds).heartbeat(step=10 + round(seconds / step_s))
    w.settle()
    for_rent(w, DEAR, CHEAP)
    return later(w)


def for_rent(w: Outside, *offers: Offer) -> None:
    """Let these be for rent from now on."""
    for offer in ALL:
        w.pods.real.set_stock(offer.offer_id, 9 if offer in offers else 0)


def later(w: Outside, steps: int = 200) -> Outside:
    """Let the run train until somebody looks again."""
    heard = w.lease().heartbeat
    assert heard is not None
    w.after(LOOK_EVERY_S).heartbeat(step=heard.step + steps)
    return w


def looks(w: Outside) -> Run:
    w.settle()
    return w.run()


def saves_and_leaves(w: Outside, step: int) -> None:
    """Let the agent obey: it saves, uploads, commits and exits."""
    w.save_checkpoint(step, w.run().attempt)
    w.exit(Cause.STOPPED_GRACEFULLY, step=step, phase=Phase.FLUSH)


def test_a_run_saves_leaves_and_goes_on_where_it_is_cheaper() -> None:
    w = training()
    assert looks(w).state is RunState.DRAINING
    assert w.lease().order is Order.DRAIN
    assert len(w.living()) == 1, "nothing is rented before the run has saved"
    saves_and_leaves(w, 2400)
    w.settle()
    first, second = w.run().attempts
    assert (first.cause, first.offer.offer_id, second.offer.offer_id) == (Cause.MOVED, "dear", "cheap")
    resume = w.run().resume
    assert resume is not None
    assert resume.step == 2400
    assert len(w.living()) == 1
    told = next(line.text for line in w.store.history(b.RUN_ID) if line.kind == "draining")
    assert told.startswith("a move saves $")
    assert "H100_80GB at $2.00/h from memory" in told
    assert not w.run().strikes, "a move is not the run's failure"


def test_by_default_the_move_is_proposed_once_and_cleared_when_it_would_save_nothing() -> None:
    w = training(hardware={"migrate": "propose"})
    for _ in range(3):
        run = looks(w)
        assert run.state is RunState.TRAINING
        assert run.noted_s(AlertKind.CHEAPER) is not None
        later(w)
    told = [line.text for line in w.store.history(b.RUN_ID) if line.kind == AlertKind.CHEAPER]
    assert len(told) == 1
    assert "hardware.migrate: auto moves by itself" in told[0]
    for_rent(w, DEAR)
    assert looks(later(w)).noted_s(AlertKind.CHEAPER) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"hardware": {"migrate": "never"}},
        {"trainer": {"steps": 500}},
        {"trainer": {"steps": None}},
        {"budget": {"usd": 3.0}},
        {"budget": {"usd": 500, "deadline": "1970-01-12T17:30:00Z"}},
    ],
    ids=["never", "near its end", "no end known", "no money for it", "deadline"],
)
def test_a_run_stays_where_a_move_does_not_pay_or_is_not_allowed(changes: dict[str, Any]) -> None:
    run = looks(training(**changes))
    assert run.drain is not DrainReason.MOVE
    assert run.noted_s(AlertKind.CHEAPER) is None


def test_nothing_is_left_while_it_saves() -> None:
    w = training()
    w.heartbeat(step=2000, saving=True)
    assert looks(w).state is RunState.TRAINING
    w.heartbeat(step=2001)
    assert looks(w).state is RunState.DRAINING


def test_a_little_cheaper_is_not_worth_it_and_an_unknown_kind_is_none_to_move_to() -> None:
    w = training()
    for_rent(w, DEAR, LITTLE, OTHER)
    assert looks(w).state is RunState.TRAINING


def test_a_run_that_has_moved_stays_for_a_while() -> None:
    w = training()
    looks(w)
    saves_and_leaves(w, 2400)
    w.trains(step=2410)
    for_rent(w, CHEAPEST)
    for at_s in range(0, MOVE_EVERY_S - LOOK_EVERY_S, LOOK_EVERY_S):
        assert looks(later(w)).state is RunState.TRAINING, at_s
    assert looks(later(later(w))).state is RunState.DRAINING


def test_if_the_cheaper_machine_is_gone_by_then_the_next_best_is_rented() -> None:
    w = training()
    looks(w)
    for_rent(w, MIDDLE, DEAR)
    saves_and_leaves(w, 2400)
    w.settle()
    assert w.run().attempts[-1].offer.offer_id == "middle"


def test_a_machine_that_is_lost_while_it_saves_is_replaced_as_usual() -> None:
    w = training()
    looks(w)
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.after(60).settle()
    assert [attempt.offer.offer_id for attempt in w.run().attempts] == ["dear", "cheap"]
    assert w.run().state is RunState.BOOTING


def test_a_user_who_stops_the_run_meanwhile_is_obeyed() -> None:
    w = training()
    looks(w)
    assert w.store.save(c.requested(w.run(), DesiredState.STOP, w.now_s))
    saves_and_leaves(w, 2400)
    w.settle()
    assert w.run().state is RunState.STOPPED
    assert w.run().attempt == 1


def test_offers_that_cannot_be_read_move_nothing_and_are_asked_for_seldom() -> None:
    w = training()
    w.fail["offers"] = TemporaryError("HTTP 503")
    asked = w.calls.count("offers")
    for _ in range(5):
        assert looks(w).state is RunState.TRAINING
        w.after(20).heartbeat(step=2500)
    assert w.calls.count("offers") == asked + 1
