"""Checks on loopback whether the trainer's services are alive.

A service may respond on its own port, while a front end responds on another one and stays up without the
service. So the service's port is queried first. A response from the front end only proves that a process was
there, not that the service is alive; a front end that refuses connections later has ended. A port that never
responded proves nothing.
"""

import http.client
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from prime_agent.event_queue import Inbox
from prime_agent.events import ServiceAnswered
from prime_agent.trainer.services import ProbeReply, ServiceHealth, Services
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.services import Service, ServiceSurroundings

ANSWER_S_MAX = 45.0
"""Seconds to wait for a response. A service may query its own workers first: vLLM's engine takes up to 30 s
to find its workers unresponsive.
"""

_log = logging.getLogger(__name__)


class Probe:
    """Probe of one service. `ask` returns the service's current state, judged by its ports."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._responded: int | None = None
        """Index of the first port that has responded successfully; None if none has."""

    def ask(self) -> ProbeReply:
        """Query the ports in order and return the state of the service."""
        answers: list[ProbeReply] = []
        for place, port in enumerate(self._service.ports):
            if self._responded is not None and place > self._responded:
                break
            answer = _ask(port, self._service.paths)
            if answer is ProbeReply.ALIVE:
                self._responded = place
                return ProbeReply.ALIVE if place == 0 else ProbeReply.UNHEARD
            answers.append(answer)
        return ProbeReply.UNHEARD if self._responded is None else answers[self._responded]


def watch_services(spec: RunSpec, work: Path, env: Mapping[str, str], inbox: Inbox) -> Services:
    """Return the services of the trainer that is about to start, and start probing those with a port."""
    machine = ServiceSurroundings(lambda path: (work / path).read_text(encoding="utf-8"), env)
    try:
        found = trainer_for(spec).services(spec, machine)
    except (OSError, ValueError) as error:
        _log.warning("the trainer's services could not be determined: %s", error)
        return ()
    for service in found:
        _log.info(
            "%s: GPUs %s, ports %s", service.name, service.gpus or "(unknown)", service.ports or "(unknown)"
        )
        if service.ports:
            ProbeThread(service, inbox)
    return tuple(ServiceHealth(service) for service in found)


class ProbeThread:
    """Thread that probes a service until the agent ends, and reports each result."""

    def __init__(self, service: Service, inbox: Inbox) -> None:
        self._service, self._probe, self._inbox = service, Probe(service), inbox
        self._pause = threading.Event()
        threading.Thread(target=self._run, name="service", daemon=True).start()

    def _run(self) -> None:
        last = ProbeReply.UNHEARD
        while True:
            answer = self._probe.ask()
            if answer is not last:
                _log.info("%s is %s", self._service.name, answer.value)
            last = answer
            self._inbox.put(ServiceAnswered(self._service.name, answer))
            self._pause.wait(self._service.every_s)


def _ask(port: int, paths: tuple[str, ...]) -> ProbeReply:
    """Return the state of the service at this port."""
    for path in paths:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S_MAX)
        try:
            connection.request("GET", path)
            status = connection.getresponse().status
        except ConnectionRefusedError:
            return ProbeReply.GONE
        except (OSError, http.client.HTTPException) as error:
            _log.info("port %d, %s: %s", port, path, error)
            return ProbeReply.UNRESPONSIVE
        finally:
            connection.close()
        if status != http.HTTPStatus.NOT_FOUND:
            return ProbeReply.ALIVE if status < http.HTTPStatus.BAD_REQUEST else ProbeReply.UNRESPONSIVE
    return ProbeReply.UNRESPONSIVE
