"""Some histories of the chaos driver, in CI; `python -m tests.chaos --seeds A:B` plays any number of them."""

import socket
from pathlib import Path

import pytest

from tests.chaos.faults import BUDGETS_USD, FAULTS_MAX, Kind, Trainer, plan
from tests.chaos.history import play
from tests.chaos.run import played, reference
from tests.e2e.strikes import Strikes
from tests.exhaustive import some_of

SEEDS = (1, 2, 3, 4)


def test_the_same_seed_is_the_same_history() -> None:
    assert [plan(seed) for seed in range(50)] == [plan(seed) for seed in range(50)]


def test_every_fault_comes_in_some_history_and_none_comes_too_often() -> None:
    plans = [plan(seed) for seed in range(200)]
    assert {fault.kind for each in plans for fault in each.faults} == set(Kind)
    assert max(len(each.faults) for each in plans) == FAULTS_MAX
    assert {each.trainer for each in plans} == set(Trainer)
    assert {each.two_processes for each in plans} == {True, False}
    assert {each.budget_usd for each in plans} == set(BUDGETS_USD)


def test_the_other_histories_are_played_although_one_could_not_be(tmp_path: Path) -> None:
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "seed-1" / "clocks").touch()
    seed, broken = played(1, "", tmp_path)
    assert seed == 1
    assert "it could not be played to its end" in broken[0]


@pytest.mark.parametrize("said", [b"", b'{"name": "a poi'])
def test_a_process_that_is_killed_while_it_reports_where_it_is_ends_no_history(said: bytes) -> None:
    struck: list[str] = []
    with Strikes({}, struck.append) as strikes, socket.create_connection(("127.0.0.1", strikes.port)) as sock:
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b"", "there is nobody left to answer"
    assert struck == []


@pytest.fixture(scope="session")
def untroubled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return reference(tmp_path_factory.mktemp("untroubled"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(SEEDS, one_in=4))
def test_no_promise_is_broken_by_what_goes_wrong(seed: int, untroubled: str, tmp_path: Path) -> None:
    broken = play(plan(seed), tmp_path, untroubled)
    assert not broken, f"{plan(seed)}\n" + "\n".join(broken)
