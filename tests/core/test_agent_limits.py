"""The seconds that an agent is told until the run's dollars are spent."""

import pytest

from prime_train.runs import ledger
from prime_train.runs.budget import GIVE_BACK_S, agent_limits_s, end_usd
from prime_train.runs.run import Orphan
from tests import builders as b
from tests.core.given import NOW_S, a_run, newest


def test_a_second_machine_of_a_lost_create_call_does_not_end_the_attempt_while_half_the_dollars_are_left() -> (
    None
):
    alone = a_run(budget={"usd": 2.0})
    attempt = newest(alone)
    orphans = (_orphan("pod-8", attempt.offer.usd_per_hour), _orphan("pod-9", attempt.offer.usd_per_hour))
    beside = a_run(budget={"usd": 2.0}, orphans=orphans)
    (_, alone_s), (save_s, end_s) = agent_limits_s(alone, NOW_S), agent_limits_s(beside, NOW_S)
    assert alone_s is not None
    assert save_s is not None
    assert end_s is not None
    assert save_s < end_s
    assert alone_s - end_s < 4 * (GIVE_BACK_S + 30), (
        "they are paid for until they are gone, and not for the rest of the run"
    )


@pytest.mark.parametrize("usd", [0.05, 0.3, 2.0])
def test_the_dollars_last_until_the_agent_ends_if_the_others_are_gone_in_time(usd: float) -> None:
    run = a_run(
        budget={"usd": usd},
        orphans=(_orphan("pod-9", 3.0),),
        attempts=(b.new_attempt(1, launched_s=NOW_S - 60),),
    )
    own = newest(run).offer.usd_per_hour / 3600
    _, end_s = agent_limits_s(run, NOW_S)
    assert end_s is not None
    paid_usd = ledger.spent(run, NOW_S).usd + end_s * own + min(end_s, GIVE_BACK_S) * 3.0 / 3600
    assert paid_usd <= end_usd(run) + 1e-9 or end_s == 1


def _orphan(pod_id: str, usd_per_hour: float) -> Orphan:
    return Orphan(pod_id, pod_id, NOW_S, NOW_S, created_s=NOW_S - 30, usd_per_hour=usd_per_hour)
