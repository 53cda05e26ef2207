"""Cores available for encoding, derived from counters: idle ones, and those that the encoders themselves
use.
"""

import threading
import time

import pytest

from prime_agent.checkpoints.idle_cores import WINDOW_S, IdleCores, idle_s


class Machine:
    """A machine's clock, and how long its cores have been idle."""

    def __init__(self) -> None:
        self.at_s = 100.0
        self.idle_s = 5000.0

    def runs(self, seconds: float, idle_cores: float) -> None:
        self.at_s += seconds
        self.idle_s += seconds * idle_cores


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def spare(machine: Machine) -> IdleCores:
    return IdleCores(lambda: machine.at_s, lambda: machine.idle_s)


def test_nothing_is_known_before_an_upload_has_lasted(machine: Machine, spare: IdleCores) -> None:
    with spare.upload():
        machine.runs(WINDOW_S * 0.9, idle_cores=3)
        assert spare.cores is None
    assert spare.cores is None


def test_idle_cores_of_the_last_window_are_idle(machine: Machine, spare: IdleCores) -> None:
    with spare.upload():
        machine.runs(WINDOW_S, idle_cores=3)
        assert spare.cores == pytest.approx(3)
        machine.runs(WINDOW_S, idle_cores=0)
        assert spare.cores == pytest.approx(0)


def test_what_happens_between_uploads_does_not_count(machine: Machine, spare: IdleCores) -> None:
    with spare.upload():
        machine.runs(3 * WINDOW_S, idle_cores=1)
    machine.runs(1000, idle_cores=8)
    with spare.upload():
        assert spare.cores == pytest.approx(1)
        machine.runs(WINDOW_S, idle_cores=2)
        assert spare.cores == pytest.approx(2)


def test_an_upload_begins_with_the_complete_of_the_one_before_not_with_its_idle_end(
    machine: Machine, spare: IdleCores
) -> None:
    with spare.upload():
        machine.runs(3 * WINDOW_S, idle_cores=0)
        assert spare.cores == pytest.approx(0)
        machine.runs(WINDOW_S, idle_cores=4)
        assert spare.cores == pytest.approx(4)
    with spare.upload():
        assert spare.cores == pytest.approx(1)


def test_what_encoders_use_is_idle_too(machine: Machine, spare: IdleCores) -> None:
    used_s = 0.05
    with spare.upload():
        with spare.encoding():
            until_s = time.thread_time() + used_s
            while time.thread_time() < until_s:
                pass
        machine.runs(WINDOW_S, idle_cores=1)
        cores = spare.cores
    assert cores is not None
    assert cores >= 1 + used_s / WINDOW_S


def test_an_encoder_that_only_waits_uses_no_core(machine: Machine, spare: IdleCores) -> None:
    with spare.upload():
        with spare.encoding():
            threading.Event().wait(0.1)
        machine.runs(WINDOW_S, idle_cores=0)
        cores = spare.cores
    assert cores is not None
    assert cores < 0.1 / WINDOW_S


def test_the_real_counter_never_runs_back() -> None:
    before = idle_s()
    assert 0 < before <= idle_s()
