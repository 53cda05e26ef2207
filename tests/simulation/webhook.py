"""The webhook behind a bad network: requests and responses are lost, late, repeated, out of order, and at
times no request arrives.

The effect of a heartbeat is that of `store.heartbeat` at the second it arrives. The agent gets the response
or None: then it does not know whether the heartbeat arrived.
"""

from collections.abc import Callable
from typing import TypeVar

from prime_train.runs.store import LeaseReply, RunRecord, Store
from prime_train.runs.wire import Commit, Heartbeat, Outcome
from tests.simulation.faults import Faults, Luck, unheard, within
from tests.simulation.loop import START_S, Loop

TIMEOUT_S = 10
Said = TypeVar("Said")


class VirtualWebhook:
    """The webhook. `news` is called when a heartbeat requests a check at once; `heard` and `committed` for
    what the store accepted.
    """

    def __init__(self, loop: Loop, luck: Luck, faults: Faults, store: Store) -> None:
        self._loop, self._luck, self._faults, self._store = loop, luck, faults, store
        self.news: Callable[[str], None] = _ignore
        self.received: Callable[[Heartbeat], None] = _ignore
        self.committed: Callable[[Commit, LeaseReply], None] = _ignore

    def up(self) -> bool:
        return not within(unheard(self._faults), self._loop.now_s)

    def up_since_s(self) -> float:
        """Return when the webhook last became available."""
        ends = [w.end_s for w in unheard(self._faults) if w.end_s <= self._loop.now_s]
        return max(ends, default=START_S) if self.up() else self._loop.now_s

    def is_answering(self, now_s: int) -> bool:
        """Send the canary."""
        return self.up() and not self._luck.hit(self._faults.canary_lost)

    # --------------------------------------------------------------------------------------------------------
    # requests

    def heartbeat(
        self, heartbeat: Heartbeat, reply: Callable[[LeaseReply | None], None], *, cut: bool
    ) -> None:
        self._send(lambda: self._heartbeat(heartbeat), reply, cut=cut)

    def commit(self, commit: Commit, reply: Callable[[LeaseReply | None], None], *, cut: bool) -> None:
        self._send(lambda: self._commit(commit), reply, cut=cut)

    def bootstrap(self, run_id: str, reply: Callable[[RunRecord | None], None], *, cut: bool) -> None:
        self._send(lambda: self._store.load(run_id), reply, cut=cut)

    def _heartbeat(self, heartbeat: Heartbeat) -> LeaseReply:
        answer = self._store.heartbeat(heartbeat, self._now_s())
        if answer.outcome is Outcome.OK:
            self.received(heartbeat)
            if heartbeat.news:
                self.news(heartbeat.run)
        return answer

    def _commit(self, commit: Commit) -> LeaseReply:
        answer = self._store.commit(commit, self._now_s())
        self.committed(commit, answer)
        return answer

    def _now_s(self) -> int:
        return self._store.now_s()

    # --------------------------------------------------------------------------------------------------------
    # the network

    def _send(
        self, act: Callable[[], Said | None], reply: Callable[[Said | None], None], *, cut: bool
    ) -> None:
        faults, luck = self._faults, self._luck
        if cut or not self.up() or luck.hit(faults.lost):
            self._silence(reply)
            return
        if luck.hit(faults.late):
            self._late(act, reply)
            return
        if luck.hit(faults.server_error):
            if luck.rng.random() < 0.5:
                act()
            self._silence(reply)
            return
        message = act()
        if luck.hit(faults.repeated):
            self._again(act, faults.late_s_max)
        if luck.hit(faults.lost):
            self._silence(reply)
        else:
            reply(message)

    def _late(self, act: Callable[[], Said | None], reply: Callable[[Said | None], None]) -> None:
        """Let a request arrive late, perhaps after others that were sent later, and perhaps when its sender
        does not wait for the response any more.
        """
        delay_s = self._luck.rng.uniform(0, self._faults.late_s_max)
        if delay_s < TIMEOUT_S:
            self._loop.after(delay_s, lambda: reply(act() if self.up() else None))
            return
        self._again(act, delay_s)
        self._silence(reply)

    def _again(self, act: Callable[[], object], delay_s: float) -> None:
        def arrive() -> None:
            if self.up():
                act()

        self._loop.after(delay_s, arrive)

    def _silence(self, reply: Callable[[Said | None], None]) -> None:
        self._loop.after(TIMEOUT_S, lambda: reply(None))


def _ignore(*what: object) -> None:
    return None
