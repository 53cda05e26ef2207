"""What the accounts at the fakes of providers share."""

import threading
from collections import defaultdict

from prime_train.providers.port import SshAddress
from prime_train.runs.wire import Ticket


class Started(defaultdict[str, list[Ticket]]):
    """The tickets with which agents were started, by pod. As on a machine, an agent that runs is not started
    again.
    """

    def __init__(self) -> None:
        super().__init__(list)
        self._lock = threading.Lock()

    def __call__(self, connection: SshAddress, ticket: Ticket) -> None:
        with self._lock:
            if not self[connection.pod_id]:
                self[connection.pod_id].append(ticket)
