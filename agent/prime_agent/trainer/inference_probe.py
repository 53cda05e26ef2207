"""Asking prime-rl's inference server on loopback whether it lives.

Its engine answers `/liveness` on a port of its own by asking its workers, which may take half a minute; older versions answer there on the
front's port, newer ones have a router there, which lives on without an engine. So the engine's port is asked first, and the front's answer
proves no life, only that there was somebody: a front that refuses later is gone. A port that never answered proves nothing.
"""

import http.client
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from prime_agent.events import ServerAnswered
from prime_agent.inbox import Inbox
from prime_agent.trainer.inference import Inference, Server
from prime_train.core.spec import RunSpec
from prime_train.trainers.prime_rl.layout import layout

EVERY_S = 10.0
ANSWER_S_MAX = 45.0
"""The engine takes up to 30 s to find its workers unresponsive."""

PATHS = ("/liveness", "/health")
"""The second, where the first is not known."""

_log = logging.getLogger(__name__)


class Probe:
    """`ports`: the engine's, then the front's."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = tuple(ports)
        self._heard: int | None = None
        """The first of the ports that has answered well."""

    def ask(self) -> Server:
        answers: list[Server] = []
        for place, port in enumerate(self._ports):
            if self._heard is not None and place > self._heard:
                break
            answer = _ask(port)
            if answer is Server.ALIVE:
                self._heard = place
                return Server.ALIVE if place == 0 else Server.UNHEARD
            answers.append(answer)
        return Server.UNHEARD if self._heard is None else answers[self._heard]


def watch_inference(spec: RunSpec, work: Path, env: Mapping[str, str], inbox: Inbox) -> Inference:
    """Where inference runs, as far as its configuration tells; from now on its server is asked, if there is one."""
    part = spec.trainer.prime_rl
    if part is None:
        return Inference()
    try:
        config = (work / part.config).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        _log.warning("where inference runs is not known: %s", error)
        return Inference()
    found = layout(config, part.overrides, count=spec.hardware.count, visible=env.get("CUDA_VISIBLE_DEVICES"))
    _log.info("inference has GPUs %s to itself, its server ports %s", found.gpus or "(unknown)", found.ports or "(unknown)")
    if found.ports:
        ProbeThread(found.ports, inbox)
    return Inference(found.gpus, asked=bool(found.ports))


class ProbeThread:
    """Asks for as long as the agent lives, and says each answer. `every_s`: the pause between two questions."""

    def __init__(self, ports: Sequence[int], inbox: Inbox, *, every_s: float = EVERY_S) -> None:
        self._probe, self._inbox, self._every_s = Probe(ports), inbox, every_s
        self._pause = threading.Event()
        threading.Thread(target=self._run, name="inference", daemon=True).start()

    def _run(self) -> None:
        last = Server.UNHEARD
        while True:
            answer = self._probe.ask()
            if answer is not last:
                _log.info("the inference server is %s", answer.value)
            last = answer
            self._inbox.put(ServerAnswered(answer))
            self._pause.wait(self._every_s)


def _ask(port: int) -> Server:
    """What answers at this port now."""
    for path in PATHS:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S_MAX)
        try:
            connection.request("GET", path)
            status = connection.getresponse().status
        except ConnectionRefusedError:
            return Server.GONE
        except (OSError, http.client.HTTPException) as error:
            _log.info("port %d, %s: %s", port, path, error)
            return Server.UNRESPONSIVE
        finally:
            connection.close()
        if status != http.HTTPStatus.NOT_FOUND:
            return Server.ALIVE if status < http.HTTPStatus.BAD_REQUEST else Server.UNRESPONSIVE
    return Server.UNRESPONSIVE
