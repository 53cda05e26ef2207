"""What a drill does to its machine by itself: end it, see how that is told, and make sure that none is
left.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_train.errors import ExternalError
from prime_train.launch.provider_drill.steps import Left, Stopped
from prime_train.providers.port import Pods
from prime_train.runs.run import Attempt
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.text.formatting import span

LOSS_S_MAX = 180.0
"""Seconds for which the provider is asked until it tells that the machine has ended."""
GIVE_BACK_S_MAX = 300.0
LOOK_S = 1.0
UNSURE_S = 120.0
"""Seconds after which a machine would be listed whose create call was not answered: more than the call itself
may take.
"""
QUIET_LOOKS = 2
"""Number of looks in a row that must find nothing before nothing counts as left."""


@dataclass(frozen=True)
class ObservedEnd:
    """How the provider told that the machine had ended. `told_as`: what the query by its id returned at last;
    seconds are counted from the request to end it; None: it did not happen in time.
    """

    told_as: str
    told_s: float | None
    unlisted_s: float | None

    @property
    def text(self) -> str:
        by_id = (
            "is not told by its id"
            if self.told_s is None
            else f"told by its id after {self.told_s:.0f} s ({self.told_as})"
        )
        listed = (
            "is still listed" if self.unlisted_s is None else f"off the list after {self.unlisted_s:.0f} s"
        )
        return f"{by_id}; {listed}"


def lose(pods: Pods, pod_id: str, *, limit_s: float = LOSS_S_MAX, look_s: float = LOOK_S) -> ObservedEnd:
    """End the machine, and ask until the provider tells it both by the machine's id and in the list, each
    `look_s` seconds. Raises Stopped if the provider does not end it within `limit_s` seconds, or does not
    tell by its id that it has ended.
    """
    began_s, pause, last = time.monotonic(), threading.Event(), ""
    told_as, told_s, unlisted_s, is_asked = "still there", None, None, False
    while (told_s is None or unlisted_s is None) and time.monotonic() - began_s < limit_s:
        try:
            if not is_asked:
                pods.terminate(pod_id)
                is_asked, began_s = True, time.monotonic()
            if told_s is None:
                found = pods.get(pod_id)
                told_as = "unknown" if found is None else found.status.value
                told_s = (
                    time.monotonic() - began_s if found is None or found.status is PodStatus.GONE else None
                )
            if unlisted_s is None and all(pod.pod_id != pod_id for pod in pods.list()):
                unlisted_s = time.monotonic() - began_s
        except ExternalError as error:
            last = str(error)
        if told_s is None or unlisted_s is None:
            pause.wait(look_s)
    if not is_asked:
        raise Stopped(f"the provider did not end the machine within {span(limit_s)}: {last}")
    if told_s is None:
        raise Stopped(
            f"after {span(limit_s)} the machine is still told as {told_as}{': ' if last else ''}{last}"
        )
    return ObservedEnd(told_as, told_s, unlisted_s)


@dataclass(frozen=True)
class GivenBack:
    """The machines that were ended, by their names, and those that could not be. `unknown`: why it is not
    known whether any is left.
    """

    ended: tuple[str, ...]
    left: tuple[Left, ...]
    unknown: str = ""


def give_back(
    pods: Pods,
    attempts_of: Callable[[], Sequence[Attempt]],
    tell: Callable[[str], None],
    *,
    limit_s: float = GIVE_BACK_S_MAX,
    look_s: float = LOOK_S,
) -> GivenBack:
    """End every machine of the drill, and ask the provider until it lists none and knows none by its id: each
    `look_s` seconds, for at most `limit_s`. `attempts_of` returns the attempts of its run, which nobody
    continues any more.
    """
    pause, began_s = threading.Event(), time.monotonic()
    ended: dict[str, str] = {}
    left: dict[str, Left] = {}
    quiet, last = 0, ""
    while quiet < QUIET_LOOKS and time.monotonic() - began_s < limit_s:
        try:
            attempts = attempts_of()
            there = _there(pods, attempts)
            left = {
                pod.pod_id: Left(pod.name, pod.pod_id, pod.usd_per_hour, "it has not ended yet")
                for pod in there
            }
            for pod in there:
                left[pod.pod_id] = _end(pods, pod) or left[pod.pod_id]
                ended[pod.pod_id] = pod.name
            is_unsure = (
                any(_is_unsure(attempt) for attempt in attempts) and time.monotonic() - began_s < UNSURE_S
            )
            quiet, last = (0 if there or is_unsure else quiet + 1), ""
            if is_unsure and not there:
                tell("a create call was not answered: waiting until a machine of it would be listed")
        except ExternalError as error:
            quiet, last = 0, str(error)
        if quiet < QUIET_LOOKS:
            pause.wait(look_s)
    gone = tuple(name for pod_id, name in ended.items() if pod_id not in left)
    return GivenBack(gone, tuple(left.values()), last)


def _there(pods: Pods, attempts: Sequence[Attempt]) -> list[Pod]:
    """Return the machines that are listed, and those that the list lacks but the provider knows by their
    ids.
    """
    found = {pod.pod_id: pod for pod in pods.list()}
    for pod_id in (attempt.pod_id for attempt in attempts if attempt.pod_id is not None):
        pod = pods.get(pod_id) if pod_id not in found else None
        if pod is not None and pod.status is not PodStatus.GONE:
            found[pod_id] = pod
    return list(found.values())


def _end(pods: Pods, pod: Pod) -> Left | None:
    """Request the end of the machine. Return it with the reason if that was refused."""
    try:
        pods.terminate(pod.pod_id)
    except ExternalError as error:
        return Left(pod.name, pod.pod_id, pod.usd_per_hour, str(error))
    return None


def _is_unsure(attempt: Attempt) -> bool:
    """Return whether the create call of the attempt was made, and its outcome is not known."""
    return attempt.pod_id is None and attempt.ended_s is None
