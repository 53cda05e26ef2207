"""When a service of the trainer counts as dead, on the example of prime-rl's inference server, and what only
looks like it.
"""

from pathlib import Path
from typing import Any

import pytest

from prime_agent.event_queue import Inbox
from prime_agent.events import ServiceAnswered
from prime_agent.gpu.reading import GpuLoad
from prime_agent.trainer.service_probe import Probe, watch_services
from prime_agent.trainer.services import ProbeReply, ServiceHealth, Services, answered, failure, sensed
from prime_train.spec.causes import Cause
from prime_train.trainers.prime_rl.trainer import LIVENESS
from prime_train.trainers.services import Service
from tests.agent.gpu.gpu_snapshots import BUSY, EMPTY, WAITING, snapshot
from tests.builders import spec
from tests.fakes.http import HttpFake, Request, Response
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec

LIMIT_S = 180
NAME = "the inference server"


def service(*, gpus: tuple[int, ...] = (), ports: tuple[int, ...] = ()) -> Service:
    return Service(NAME, Cause.INFERENCE_FAILED, LIMIT_S, gpus, ports, LIVENESS)


def one(*, gpus: tuple[int, ...] = (), ports: tuple[int, ...] = ()) -> Services:
    return (ServiceHealth(service(gpus=gpus, ports=ports)),)


SPLIT = one(gpus=(0, 1), ports=(8100,))
"""GPUs 0 and 1 are used for inference, 2 and 3 for training."""


def after(
    services: Services, *rounds: tuple[GpuLoad, ...], answer: ProbeReply = ProbeReply.UNHEARD
) -> Services:
    """Return the services after these readings, ten seconds apart from second 0, with the same answer each
    time.
    """
    for count, loads in enumerate(rounds):
        services = sensed(services, snapshot(*loads).loads, count * 10.0)
        services = answered(services, NAME, answer, count * 10.0)
    return services


def verdict(services: Services, now_s: float, **more: Any) -> str | None:
    """Return the verdict at step 12, which was made at second 0."""
    facts: dict[str, Any] = {"step": 12, "rose_s": 0.0, "slow_s": 20.0, "saving": False}
    failed = failure(services, now_s, **facts | more)
    assert failed is None or failed[0] is Cause.INFERENCE_FAILED
    return failed[1] if failed is not None else None


SERVING = (BUSY, BUSY, BUSY, BUSY)
DEAD = (EMPTY, EMPTY, WAITING, WAITING)


def test_empty_inference_gpus_while_the_trainer_waits_are_named_with_the_step() -> None:
    dead = after(SPLIT, SERVING, *[DEAD] * 20)
    assert verdict(dead, 189) is None
    assert (
        verdict(dead, 190)
        == "GPUs 0, 1 of the inference server at 0 % with empty memory for 180 s, while the trainer has "
        "waited at step 12 for 190 s"
    )


def test_one_dead_replica_of_two_is_enough() -> None:
    dead = after(SPLIT, SERVING, *[(EMPTY, BUSY, WAITING, WAITING)] * 20)
    assert str(verdict(dead, 200)).startswith("GPU 0 of the inference server at 0 %")


def test_where_the_port_is_not_known_the_gpus_alone_decide_and_that_is_reported() -> None:
    dead = after(one(gpus=(0,)), SERVING, *[DEAD] * 20)
    assert "(its port is not known)" in str(verdict(dead, 200))


def test_while_weights_load_nothing_is_dead() -> None:
    """This covers the time before an attempt's first step, and before these GPUs have ever held memory."""
    assert verdict(after(SPLIT, SERVING, *[DEAD] * 20), 200, step=0) is None
    assert verdict(after(SPLIT, *[DEAD] * 20), 200) is None


def test_between_rollouts_nothing_is_dead() -> None:
    assert verdict(after(SPLIT, *[(WAITING, WAITING, BUSY, BUSY)] * 40), 400) is None


def test_while_a_checkpoint_is_saved_or_an_evaluation_runs_nothing_is_dead() -> None:
    assert verdict(after(SPLIT, SERVING, *[DEAD] * 20), 200, saving=True) is None


def test_while_steps_are_made_nothing_is_dead() -> None:
    assert verdict(after(SPLIT, SERVING, *[DEAD] * 40), 400, rose_s=300.0) is None


def test_a_gpu_that_inference_shares_with_the_trainer_tells_nothing() -> None:
    assert verdict(after(one(), (BUSY,), *[(EMPTY,)] * 40), 400) is None


def test_figures_that_are_too_old_tell_nothing() -> None:
    assert verdict(sensed(after(SPLIT, SERVING, *[DEAD] * 20), (), 210.0), 400) is None


def test_an_engine_that_answers_for_itself_is_alive() -> None:
    assert verdict(after(SPLIT, SERVING, *[DEAD] * 20, answer=ProbeReply.ALIVE), 200) is None


def test_a_server_that_refuses_is_dead_even_where_its_gpus_are_not_known() -> None:
    gone = after(one(ports=(8100,)), *[SERVING] * 20, answer=ProbeReply.GONE)
    assert (
        verdict(gone, 200)
        == "the inference server refuses connections for 200 s, while the trainer has waited at step 12 for "
        "200 s"
    )
    assert verdict(after(one(ports=(8100,)), *[SERVING] * 20), 200) is None


def test_an_engine_that_does_not_respond_has_as_long_as_a_slow_step_takes() -> None:
    stuck = after(SPLIT, *[SERVING] * 40, answer=ProbeReply.UNRESPONSIVE)
    assert verdict(stuck, 300, slow_s=400.0) is None
    expected = (
        "the inference server on GPUs 0, 1 fails its health probe for 401 s, while the trainer has waited at "
        "step 12 for 401 s"
    )
    assert verdict(stuck, 401, slow_s=400.0) == expected
    assert verdict(stuck, 181, slow_s=None) is not None


def test_a_server_that_is_alive_again_begins_anew() -> None:
    stuck = after(SPLIT, *[SERVING] * 20, answer=ProbeReply.UNRESPONSIVE)
    again = answered(answered(stuck, NAME, ProbeReply.ALIVE, 200), NAME, ProbeReply.UNRESPONSIVE, 210)
    assert verdict(again, 300) is None


# ------------------------------------------------------------------------------------------------------------
# asking it


class Engine(HttpFake):
    """A server that answers each path with its entry in `status`; 404 for other paths."""

    def __init__(self, **status: int) -> None:
        super().__init__()
        self.status = {f"/{path}": code for path, code in status.items()}

    def respond(self, request: Request) -> Response:
        return Response(self.status.get(request.path, 404))


def free_port() -> int:
    with Engine() as engine:
        return engine.port


def test_an_engine_is_alive_then_unresponsive_then_gone() -> None:
    with Engine(liveness=200) as engine:
        probe = Probe(service(ports=(engine.port,)))
        assert probe.ask() is ProbeReply.ALIVE
        engine.status = {"/liveness": 503}
        assert probe.ask() is ProbeReply.UNRESPONSIVE
    assert probe.ask() is ProbeReply.GONE


def test_where_liveness_is_not_known_health_is_queried() -> None:
    with Engine(health=200) as engine:
        assert Probe(service(ports=(engine.port,))).ask() is ProbeReply.ALIVE


@pytest.mark.parametrize("status", [{}, {"liveness": 503}, {"liveness": 401}])
def test_a_port_that_never_answered_well_proves_nothing(status: dict[str, int]) -> None:
    assert Probe(service(ports=(free_port(),))).ask() is ProbeReply.UNHEARD
    with Engine(**status) as other:
        assert Probe(service(ports=(other.port,))).ask() is ProbeReply.UNHEARD


def test_a_front_proves_no_life_but_its_end_is_an_end() -> None:
    with Engine(liveness=200) as front:
        probe = Probe(service(ports=(free_port(), front.port)))
        assert probe.ask() is ProbeReply.UNHEARD
    assert probe.ask() is ProbeReply.GONE


def test_a_dead_engine_behind_a_living_front_is_gone() -> None:
    with Engine(liveness=200) as front:
        with Engine(liveness=200) as engine:
            probe = Probe(service(ports=(engine.port, front.port)))
            assert probe.ask() is ProbeReply.ALIVE
        assert probe.ask() is ProbeReply.GONE


# ------------------------------------------------------------------------------------------------------- from
# a working tree


def test_a_server_in_the_configuration_is_probed_as_long_as_it_lives(tmp_path: Path) -> None:
    inbox = Inbox()
    with Engine(liveness=200) as engine:
        (tmp_path / "rl.toml").write_text(f"[inference.deployment]\nbackend_port = {engine.port}\n")
        wanted = prime_rl_spec(hardware={"gpus": ["H100"], "count": 2})
        assert watch_services(wanted, tmp_path, {}, inbox) == one(gpus=(0,), ports=(engine.port, 8000))
        assert inbox.get(30) == ServiceAnswered(NAME, ProbeReply.ALIVE)


@pytest.mark.parametrize("config", [None, b"\xff\xfe", b"[inference", b""])
def test_a_configuration_that_tells_nothing_leaves_it_unwatched(tmp_path: Path, config: bytes | None) -> None:
    if config is not None:
        (tmp_path / "rl.toml").write_bytes(config)
    assert watch_services(prime_rl_spec(), tmp_path, {}, Inbox()) == ()
    assert watch_services(spec(), tmp_path, {}, Inbox()) == ()


def test_of_two_services_each_has_its_own_answers() -> None:
    judge = ServiceHealth(Service("the judge", Cause.TRAINER_ERROR, 60, ports=(9000,)))
    both = answered((*SPLIT, judge), "the judge", ProbeReply.GONE, 0.0)
    assert failure(both, 59.0, step=12, rose_s=0.0, slow_s=None, saving=False) is None
    expected = (
        Cause.TRAINER_ERROR,
        "the judge refuses connections for 60 s, while the trainer has waited at step 12 for 60 s",
    )
    assert failure(both, 60.0, step=12, rose_s=0.0, slow_s=None, saving=False) == expected
