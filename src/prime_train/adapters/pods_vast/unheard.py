"""Instances whose hosts do not report to Vast.ai.

A host that was rented and then goes offline, or is `unknown`, while its instance boots, does not come back in time: Vast.ai documents that
who waits for such an instance to run waits for ever. That is only concluded after a while. It has an effect only on machines from which no
agent was ever heard; about all others heartbeats decide.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from prime_train.core.verdict import Pod, PodStatus

UNHEARD_S_MAX = 300.0
"""Seconds without a report of the host after which its instance counts as broken."""
KEPT_MAX = 1000


class UnheardHosts:
    """When each instance was first seen without a report of its host. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since_s: dict[str, float] = {}

    def judged(self, pod: Pod) -> Pod:
        """Return the pod, which is broken if its host has not reported for `UNHEARD_S_MAX`."""
        if pod.status is not PodStatus.UNKNOWN:
            self._since_s.pop(pod.pod_id, None)
            return pod
        now_s = self._clock()
        since_s = self._since_s.setdefault(pod.pod_id, now_s)
        while len(self._since_s) > KEPT_MAX:
            self._since_s.pop(next(iter(self._since_s)))
        return replace(pod, status=PodStatus.BROKEN) if now_s - since_s >= UNHEARD_S_MAX else pod
