"""A small environment for tests of reconcile: the memory store and pods that ship, a bucket in a dict, and
ways for each to fail.

w = Outside()                  an environment with one queued run; nothing has failed yet; of its bucket
reconcile may use what the template allows the watcher on AWS w.settle()                     reconcile until
nothing is left to do, at w.now_s w.fail["create"] = Lost()      the call is made, its response is lost
w.after(60)                    time passes
"""

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prime_train.buckets.port import GET_BYTES_MAX, Content, Data, Stat
from prime_train.checkpoints.manifest import Manifest
from prime_train.errors import ExternalError, ObjectTooLarge, TemporaryError
from prime_train.providers.memory import DEFAULT_OFFERS, MemoryPods
from prime_train.runs.breaker import Watch
from prime_train.runs.offer import Offer
from prime_train.runs.run import Alert, Change, Lease, Run, RunState
from prime_train.runs.store import LeaseReply
from prime_train.runs.verdict import Pod, TrackerObserved
from prime_train.runs.wire import JobExit, Ticket
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.memory import MemoryStore
from prime_train.watch.context import Context, Step, SweepResult
from prime_train.watch.steps import reconcile, reconcile_fully
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.lambdas.judged_bucket import JudgedBucket

MASTER = b"master"


class Crash(Exception):
    """The watcher dies here; no adapter raises this."""


class Lost(Exception):
    """The call takes effect, and its response never arrives."""


@dataclass
class Faults:
    """Faults by the name of the call, each in effect until it is removed. Every call is recorded."""

    fail: dict[str, Exception] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    looking_on: Callable[[str], None] | None = None

    def before(self, call: str, detail: str = "") -> None:
        self.calls.append(f"{call} {detail}".strip())
        if self.looking_on is not None:
            self.looking_on(call)
        error = self.fail.get(call)
        if error is not None and not isinstance(error, Lost):
            raise error

    def after(self, call: str) -> None:
        if isinstance(self.fail.get(call), Lost):
            raise TemporaryError(f"{call}: no answer within 30 s")


class Provider:
    """MemoryPods behind a faulty connection. Its list can leave pods out and show ended ones, and `get` can
    deny that it knows an id. `charges`: another price than it offered; `called`: another provider's name.
    """

    def __init__(self, pods: MemoryPods, faults: Faults) -> None:
        self.real, self.faults = pods, faults
        self.hidden: set[str] = set()
        self.denied: set[str] = set()
        self.charges: float | None = None
        self.called = ""
        self.ghosts: list[Pod] = []

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        self.faults.before("offers")
        return [
            replace(offer, provider=self.called or offer.provider) for offer in self.real.offers(hardware)
        ]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        self.faults.before("create", name)
        pod = self.real.create(name, offer, hardware)
        self.faults.after("create")
        return pod if self.charges is None else replace(pod, usd_per_hour=self.charges)

    def list(self) -> Sequence[Pod]:
        self.faults.before("list")
        return [*(pod for pod in self.real.list() if pod.pod_id not in self.hidden), *self.ghosts]

    def get(self, pod_id: str) -> Pod | None:
        self.faults.before("get", pod_id)
        return None if pod_id in self.denied else self.real.get(pod_id)

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        self.faults.before("put_agent", pod.pod_id)
        self.real.put_agent(pod, ticket)

    def terminate(self, pod_id: str) -> None:
        self.faults.before("terminate", pod_id)
        self.real.terminate(pod_id)
        self.faults.after("terminate")


class DictBucket:
    """Objects in a dict, which can be unavailable."""

    def __init__(self, faults: Faults) -> None:
        self.objects: dict[str, bytes] = {}
        self.faults = faults

    def put(self, key: str, data: Data) -> None:
        self.faults.before("bucket")
        self.objects[key] = bytes(data)

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        raise NotImplementedError("reconcile never does this")

    def put_file(self, key: str, path: object) -> None:
        raise NotImplementedError("reconcile never does this")

    def get(self, key: str) -> Content | None:
        self.faults.before("bucket")
        data = self.objects.get(key)
        if data is not None and len(data) > GET_BYTES_MAX:
            raise ObjectTooLarge(f"{key} has {len(data)} bytes")
        return Content(data, str(hash(data))) if data is not None else None

    def read(self, key: str) -> Data | None:
        content = self.get(key)
        return content.data if content is not None else None

    def get_file(self, key: str, path: object) -> bool:
        raise NotImplementedError("reconcile never does this")

    def stat(self, key: str) -> Stat | None:
        self.faults.before("bucket")
        return Stat(key, len(self.objects[key]), b.T0_S) if key in self.objects else None

    def list(self, prefix: str) -> Iterator[Stat]:
        self.faults.before("bucket")
        return iter(
            [
                Stat(key, len(data), b.T0_S)
                for key, data in sorted(self.objects.items())
                if key.startswith(prefix)
            ]
        )

    def delete(self, key: str) -> None:
        self.faults.before("bucket")
        self.objects.pop(key, None)


class RacedStore(MemoryStore):
    """Another watcher is a moment faster: its action happens just before a save of this one."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__(clock)
        self.saved: list[Change] = []
        self.overtaken_by: list[str] = []

    def save(self, change: Change) -> bool:
        for run_id in self.overtaken_by:
            self.wake(run_id, b.T0_S)
        self.overtaken_by.clear()
        done = super().save(change)
        if done:
            self.saved.append(change)
        return done


@dataclass
class RecordingNotifier:
    """A notifier that keeps what it sent, or fails. `meanwhile` is called in the middle of each call."""

    alerts: list[Alert] = field(default_factory=list)
    error: ExternalError | Crash | None = None
    meanwhile: Callable[[], object] | None = None

    def send(self, alert: Alert, run: Run | None) -> None:
        if self.meanwhile is not None:
            self.meanwhile()
        if self.error is not None:
            raise self.error
        self.alerts.append(alert)

    def kinds(self) -> list[str]:
        return [alert.kind for alert in self.alerts]


@dataclass
class Singing:
    sings_now: bool = True

    def is_answering(self, now_s: int) -> bool:
        return self.sings_now


@dataclass
class Tracking:
    seen: TrackerObserved | None = None

    def look(self, run: Run) -> TrackerObserved | None:
        return self.seen


class Outside:
    """An environment with one queued run, and events that happen to it."""

    def __init__(
        self,
        spec: Mapping[str, object] | None = None,
        *,
        boot_s: int = 0,
        stock: dict[str, int] | None = None,
    ) -> None:
        self.now_s = b.T0_S
        self.faults = Faults()
        self.fail, self.calls = self.faults.fail, self.faults.calls
        self.store = RacedStore(lambda: self.now_s)
        self.pods = Provider(
            MemoryPods(offers=DEFAULT_OFFERS, boot_s=boot_s, stock=stock, clock=lambda: self.now_s),
            self.faults,
        )
        self.bucket = DictBucket(self.faults)
        self.reported, self.canary, self.tracker = RecordingNotifier(), Singing(), Tracking()
        self.received: list[str] = []
        self.identities: Iterator[str] = itertools.repeat("")
        """Identities of later attempts. Without them names and keys are as short as tests expect; see
        `with_identities`.
        """
        self.judged = JudgedBucket(self.bucket, "Watcher")
        self.world = Context(
            self.store,
            self.judged,
            self.pods,
            master=MASTER,
            webhook_url="http://127.0.0.1:1",
            notifiers=(self.reported,),
            tracker=self.tracker,
            canary=self.canary,
            watched=lambda run_id, what, text: self.received.append(what),
            new_identity=lambda: next(self.identities),
        )
        self.seqs: dict[str, int] = {}
        self.add(b.RUN_ID, spec)

    def with_identities(self) -> "Outside":
        self.identities = (f"{number:08x}{0:08x}" for number in itertools.count(1))
        return self

    def add(self, run_id: str, spec: Mapping[str, object] | None = None, *, commit: str = "") -> None:
        assert self.store.create(Run(run_id, b.spec(**(spec or {})), created_s=self.now_s, commit=commit))

    # --------------------------------------------------------------------------------------------------------
    # acts

    def copied(self) -> Callable[[], None]:
        """Copy the store, and return a function that restores the copy."""
        kept = {
            name: copy.copy(value)
            for name, value in vars(self.store).items()
            if name.startswith("_") and name != "_lock"
        }
        return lambda: vars(self.store).update({name: copy.copy(value) for name, value in kept.items()})

    def reconcile(self, run_id: str = b.RUN_ID) -> Step:
        return reconcile(self.world, run_id, self.now_s)

    def settle(self, run_id: str = b.RUN_ID) -> int:
        return reconcile_fully(self.world, run_id, self.now_s)

    def sweep(self) -> SweepResult:
        return sweep(self.world, self.now_s)

    def after(self, seconds: int) -> "Outside":
        self.now_s += seconds
        return self

    def sweeps(self, seconds: int, *, every_s: int = 15) -> None:
        """Sweep from now on for this many seconds."""
        for _ in range(seconds // every_s):
            self.after(every_s).sweep()

    def heartbeat(self, run_id: str = b.RUN_ID, **message: Any) -> LeaseReply:
        """Send a heartbeat of the newest attempt's agent."""
        self.seqs[run_id] = self.seqs.get(run_id, 0) + 1
        fields: dict[str, Any] = {"run": run_id, "attempt": self.run(run_id).attempt, "step": 0} | message
        fields.setdefault("identity", self.identity(fields["attempt"], run_id))
        return self.store.heartbeat(b.heartbeat(self.seqs[run_id], **fields), self.now_s)

    def exit(self, cause: Cause, run_id: str = b.RUN_ID, **message: Any) -> LeaseReply:
        return self.heartbeat(run_id, exit=JobExit(cause=cause), news=True, **message)

    def trains(self, run_id: str = b.RUN_ID, step: int = 10) -> "Outside":
        """Advance a queued run until it trains."""
        self.settle(run_id)
        self.after(5).heartbeat(run_id)
        self.settle(run_id)
        self.after(5).heartbeat(run_id, step=step)
        self.settle(run_id)
        assert self.run(run_id).state is RunState.TRAINING
        return self

    def save_checkpoint(self, step: int, attempt: int = 1, *, complete: bool = True) -> Manifest:
        manifest = Manifest(
            run=b.RUN_ID,
            attempt=attempt,
            identity=self.identity(attempt),
            step=step,
            created_s=self.now_s,
            folder=f"step_{step}",
            files=(b.stored_file("weights", step, size=4),),
        )
        self.bucket.objects[f"runs/{b.RUN_ID}/blobs/{b.digest(step)}"] = b"good" if complete else b"cut"
        self.bucket.objects[manifest.key] = manifest.model_dump_json().encode()
        return manifest

    # --------------------------------------------------------------------------------------------------------
    # looks

    def is_at_rest(self, run_id: str = b.RUN_ID) -> bool:
        """Return whether nothing is left to do for the run, except the later clean-up of unlisted chunks."""
        return self.run(run_id).is_at_rest

    def run(self, run_id: str = b.RUN_ID) -> Run:
        record = self.store.load(run_id)
        assert record is not None
        return record.run

    def identity(self, attempt: int, run_id: str = b.RUN_ID) -> str:
        """Return the identity of that attempt; empty if it has none."""
        return next((one.identity for one in self.run(run_id).attempts if one.number == attempt), "")

    def lease(self, run_id: str = b.RUN_ID) -> Lease:
        record = self.store.load(run_id)
        assert record is not None
        return record.lease

    def living(self) -> list[str]:
        """Return the names of all machines that really exist and are paid for."""
        return sorted(pod.name for pod in self.pods.real.list())

    def done(self, call: str) -> list[str]:
        return [entry for entry in self.calls if entry.split()[0] == call]

    def last_watch(self) -> Watch:
        return self.store.watch()
