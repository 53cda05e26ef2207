"""An agent's core driven by hand: events in, effects out, time as a number."""

from typing import Any, TypeVar

from prime_agent import effects as e
from prime_agent import events as v
from prime_agent.state import AgentState, Job, initial
from prime_agent.state_machine import next_tick_s, step
from prime_train.runs.wire import Heartbeat, Order, Outcome, Phase, Reply
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import Progress
from tests.builders import RUN_ID, spec

OK = Reply(outcome=Outcome.OK, heartbeat_s=30)
FENCED = Reply(outcome=Outcome.FENCED)
TICKS_MAX = 100_000
T = TypeVar("T")


def ordered(order: Order, reason: str = "") -> Reply:
    return Reply(outcome=Outcome.OK, order=order, reason=reason, heartbeat_s=30)


def steps(*numbers: int, reward: float | None = None, loss: float | None = 1.0) -> v.StepsReported:
    return v.StepsReported(tuple(Progress(number, loss, reward) for number in numbers))


class History:
    """A history of an agent's core. `answers`: whether heartbeats are answered at once, as by a control plane
    that is available.
    """

    def __init__(self, wanted: RunSpec | None = None, *, answers: bool = True, **job: Any) -> None:
        self.state: AgentState = initial(
            Job(RUN_ID, 1, wanted or spec(checkpoints={"sentinel": "COMPLETE"}), **job)
        )
        self.now_s = 1000.0
        self.answers = answers
        self.outputs: v.OutputsUploaded | None = v.OutputsUploaded()
        """How an upload of outputs ends, at once; None: it goes on."""
        self.damage = ""
        """What is damaged in the bucket of the last checkpoint."""
        self.effects: list[e.Effect] = []

    def hear(self, event: v.Event, *, after_s: float = 0.0) -> list[e.Effect]:
        """Return the effects of `event`, which happens `after_s` later, including those of the control
        plane's answers.
        """
        self.now_s += after_s
        self.state, found = step(self.state, event, self.now_s)
        done = list(found)
        for effect in found:
            if self.answers and isinstance(effect, e.SendHeartbeat | e.SendExit):
                done += self.hear_quietly(v.HeartbeatAnswered(OK))
            if isinstance(effect, e.Settle):
                done += self.hear_quietly(v.Settled())
            if isinstance(effect, e.VerifyCheckpoint):
                done += self.hear_quietly(v.CheckpointVerified(effect.step, self.damage))
            if isinstance(effect, e.UploadOutputs) and self.outputs is not None:
                done += self.hear_quietly(self.outputs)
        self.effects += done
        return done

    def hear_quietly(self, event: v.Event) -> list[e.Effect]:
        before = len(self.effects)
        done = self.hear(event)
        del self.effects[before:]
        return done

    def wait(self, seconds: float) -> list[e.Effect]:
        """Let time pass, with a tick whenever the core asks for one."""
        until_s, done = self.now_s + seconds, []
        for _ in range(TICKS_MAX):
            next_s = next_tick_s(self.state, self.now_s)
            assert next_s > self.now_s
            if next_s > until_s:
                break
            done += self.hear(v.Tick(), after_s=next_s - self.now_s)
        self.now_s = until_s
        return done

    def begin(self) -> "History":
        """Proceed to the start of the trainer."""
        self.hear(v.Started())
        while self.state.phase is not Phase.TRAIN:
            self.hear(v.PhaseDone(self.state.phase), after_s=1)
        return self

    def train(self, *numbers: int, each_s: float = 1.0) -> "History":
        for number in numbers:
            self.hear(steps(number), after_s=each_s)
        return self

    def end(self, event: v.TrainerExited) -> list[e.Effect]:
        """Let the trainer end; the last scan finds nothing, and the log is kept."""
        done = self.hear(event)
        done += self.look()
        return done + (self.hear(v.LogKept()) if self.state.keeping_log else [])

    def look(self, *found: int, saving: bool = False) -> list[e.Effect]:
        """Answer the scans of the checkpoint folder, up to one that is begun now or later."""
        done: list[e.Effect] = []
        wanted = self.state.transfers.scans + 1
        while self.state.transfers.seen < wanted and not self.state.over:
            done += (
                self.hear(v.CheckpointsScanned(found, saving))
                if self.state.transfers.scanning
                else self.wait(1)
            )
        return done

    def of(self, kind: type[T]) -> list[T]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def heartbeats(self) -> list[Heartbeat]:
        return [
            effect.heartbeat for effect in self.effects if isinstance(effect, e.SendHeartbeat | e.SendExit)
        ]
