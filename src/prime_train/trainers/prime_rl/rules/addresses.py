"""Rules about ports and addresses of a prime-rl config, whose processes share one machine."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_SERVER = "inference.server.port"
_CLIENT = "orchestrator.model.client.base_url"
_METRICS_ABOVE, _BACKEND_ABOVE = 21_000, 100
_PORT = r"[a-z]+://[^/]*?(?::(\d+))?(?:/|$)"
_BROADCASTS = {"nccl": 29_501, "nixl": 8_001}


class Used(NamedTuple):
    """A port in use. `setting` sets or implies the port, which is in use only if that part of the config
    exists.
    """

    port: int
    setting: str
    what: str


RULES = PrimeRlRules()


def _used(settings: ReceivedConfig) -> Iterator[Used]:
    """Yield every port that a process listens on."""
    server = settings.integer(_SERVER)
    if settings.has("inference") and server is not None:
        yield Used(server, _SERVER, "the inference server")
        backend = (
            settings.integer("inference.backend_port")
            if settings.has("inference.backend_port")
            else server + _BACKEND_ABOVE
        )
        if backend is not None:
            yield Used(
                backend,
                "inference.backend_port" if settings.has("inference.backend_port") else _SERVER,
                "its engine",
            )
        yield Used(server + _METRICS_ABOVE, _SERVER, "its router's metrics")
    broadcast = settings.text("trainer.weight_broadcast.type") or ""
    if broadcast in _BROADCASTS:
        own = (
            settings.integer("weight_broadcast.port")
            if settings.has("weight_broadcast.port")
            else _BROADCASTS[broadcast]
        )
        if own is not None:
            yield Used(own, "weight_broadcast.port", "the broadcast of weights")
    yield from _rollouts(settings)
    base = settings.integer("orchestrator.env_server_base_port")
    if base is not None:
        for at, (where, _) in enumerate(settings.items("orchestrator.train.source")):
            if settings.at((*where, "serve", "address")) is None:
                yield Used(base + at, "orchestrator.env_server_base_port", "an environment")
    if settings.has("trainer.metrics_server"):
        metrics = settings.integer("trainer.metrics_server.port")
        if metrics is not None:
            yield Used(metrics, "trainer.metrics_server.port", "the trainer's metrics")


def _rollouts(settings: ReceivedConfig) -> Iterator[Used]:
    part = "rollout_transport" if settings.has("rollout_transport") else "trainer.rollout_transport"
    if settings.value(f"{part}.type") != "zmq":
        return
    port = settings.integer(f"{part}.port") if settings.has(f"{part}.port") else 5555
    if port is not None:
        yield Used(port, f"{part}.port", "the transport of rollouts")


@RULES.error(
    "PR327",
    "one port is used twice",
    why="prime-rl accepts the value, but the second process to start crashes. By default the trainer's "
    "metrics and inference both use port 8000.",
    fix="give one of them another port",
)
def clash(settings: ReceivedConfig) -> Iterator[Violation]:
    taken: dict[int, Used] = {}
    for used in _used(settings) if _shares_a_machine(settings) else ():
        first = taken.setdefault(used.port, used)
        if first is used or first.setting == used.setting:
            continue
        blamed, other = (
            (used, first) if settings.has(used.setting) or not settings.has(first.setting) else (first, used)
        )
        message = f"port {used.port} is used twice: by {blamed.what} and by {other.what} ({other.setting})"
        yield violation(settings.place(blamed.setting), message, f"give {blamed.setting} a port of its own")


@RULES.error(
    "PR328",
    "the client uses another port than the server",
    why="prime-rl rejects the config at start-up.",
    fix="delete base_url, which then follows the server's port",
)
def client(settings: ReceivedConfig) -> Iterator[Violation]:
    url, server = settings.text(_CLIENT), settings.integer(_SERVER)
    if (
        url is None
        or server is None
        or not settings.has(_CLIENT)
        or not settings.has("inference")
        or not _shares_a_machine(settings)
    ):
        return
    found = re.match(_PORT, url)
    if (
        found is not None
        and not settings.has("orchestrator.model.client.admin_base_url")
        and found[1] != str(server)
    ):
        seen = f"port {found[1]}" if found[1] else "no port"
        yield violation(
            settings.place(_CLIENT),
            f"{_CLIENT} uses port {seen}, but the inference server listens on {server}",
            f"write port {server}",
        )


def _shares_a_machine(settings: ReceivedConfig) -> bool:
    return settings.value("deployment.type") == "single_node"


@RULES.warning(
    "PR329",
    "no server for the model",
    why="Without [inference] the orchestrator waits for a server that you must start yourself.",
    fix="add [inference], or write the server's address into orchestrator.model.client.base_url",
)
def nothing_serves(settings: ReceivedConfig) -> Iterator[Violation]:
    enough = ("inference", _CLIENT, "orchestrator.model.client.admin_base_url", "trainer.data.fake")
    if settings.is_complete and _shares_a_machine(settings) and not any(map(settings.has, enough)):
        yield violation(
            ("inference",),
            "there is no [inference], so prime-rl starts no server and waits half an hour for one",
            "add [inference]",
        )
