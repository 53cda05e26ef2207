"""Values shared by the tests of the core: times, evidence, and small but unusual values for properties."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from prime_train.runs.offer import Offer
from prime_train.runs.run import ACTIVE_STATES, Attempt, DrainReason, Lease, Run, RunState
from prime_train.runs.verdict import (
    Evidence,
    Finished,
    Gone,
    Healthy,
    Pod,
    PodsObserved,
    PodStatus,
    PodsUnknown,
    Sick,
    Silent,
    Stalled,
    Unknown,
    Verdict,
)
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from tests import builders as b

NOW_S = b.T0_S + 700
"""A time in the first attempt, well after its first step."""
NOT_YET = Healthy(phase=None, step=0)
DOWN = PodsUnknown("HTTP 503")
OUT_OF_REACH = Unknown("HTTP 503")
BLIND = Unknown("3 of 4 runs fell silent", breaker=True)


def healthy(phase: Phase = Phase.TRAIN, step: int = 10, **reported: Any) -> Healthy:
    """Return the verdict on a machine whose fresh heartbeat reports this."""
    return Healthy(phase, step, heartbeat=b.heartbeat(9, phase=phase, step=step, **reported))


TRAINS = healthy()

PROPERTY = settings(deadline=None, max_examples=200, derandomize=True)
"""The same examples on every machine; a stress run raises `max_examples` here."""


def a_run(state: RunState = RunState.TRAINING, **changes: Any) -> Run:
    """Like `builders.run`, with a spec that can be changed by section (`health={...}`), and a reason to drain
    if it drains.
    """
    sections = {
        name: changes.pop(name)
        for name in ("health", "budget", "trainer", "hardware", "after")
        if name in changes
    }
    if sections:
        changes["spec"] = b.spec(**sections)
    if state is RunState.DRAINING:
        changes = {"drain": DrainReason.USER, "drain_s": NOW_S - 10} | changes
    return b.run(state, **changes)


def newest(run: Run) -> Attempt:
    """Return the run's newest attempt, which exists."""
    assert run.current_attempt is not None
    return run.current_attempt


def seen(*pods: Pod, gone: tuple[str, ...] = ()) -> PodsObserved:
    """Return a provider's answer with these pods, in which those ids have ended."""
    return PodsObserved(pods, frozenset(gone))


def as_expected(run: Run) -> PodsObserved:
    """Return a provider's answer with the current attempt's machine, active, and nothing else."""
    attended = run.state in ACTIVE_STATES and newest(run).pod_id is not None
    return seen(b.pod(run)) if attended else seen()


def evidence(run: Run, **changes: Any) -> Evidence:
    """Return evidence without any problem: the provider answers, and the lease fits the run. Keywords for the
    lease change it.
    """
    facts: dict[str, Any] = {
        name: changes.pop(name)
        for name in ("pods", "tracker", "blind", "seen_since_s", "unheard_s")
        if name in changes
    }
    lease: Lease = changes.pop("lease", None) or b.lease(run, **changes)
    pods = facts.pop("pods", None) or as_expected(run)
    return Evidence(lease, pods, **facts)


CAUSES = st.sampled_from(list(Cause))
STATES = st.sampled_from(list(RunState))
SECONDS = st.integers(min_value=0, max_value=5000)
OFFERS = st.builds(
    Offer,
    provider=st.sampled_from(["local", "prime"]),
    offer_id=st.sampled_from("abcdef"),
    usd_per_hour=st.sampled_from([0.0, 0.5, 1.0, 2.5, 40.0]),
    spot=st.booleans(),
    gpu=st.sampled_from(["", "H100", "A100"]),
    gpu_count=st.sampled_from([0, 1, 8]),
    disk_gib=st.sampled_from([5, 100]),
)
VERDICTS: st.SearchStrategy[Verdict] = st.one_of(
    st.builds(
        Healthy,
        phase=st.one_of(st.none(), st.sampled_from(list(Phase))),
        step=st.sampled_from([0, 10, 20]),
        cut_off=st.booleans(),
        preempting=st.booleans(),
    ),
    st.builds(Gone, why=st.just("404")),
    st.builds(Silent, silent_s=st.integers(91, 2000), past_limit=st.booleans()),
    st.builds(
        Stalled,
        cause=st.sampled_from([Cause.STALLED, Cause.START_TIMEOUT, Cause.BOOT_TIMEOUT]),
        waited_s=st.just(400),
        limit_s=st.just(300),
        evidence=st.booleans(),
    ),
    st.builds(Sick, cause=CAUSES, detail=st.sampled_from(["", "exit 1"]), exited=st.booleans()),
    st.builds(Finished, step=st.just(20)),
    st.builds(Unknown, why=st.just("HTTP 503"), breaker=st.booleans()),
)
PODS = st.builds(
    Pod,
    pod_id=st.sampled_from(["pod-0", "pod-1", "pod-2", "pod-3", "pod-x"]),
    name=st.sampled_from([f"pt-{b.RUN_ID}-e{attempt}" for attempt in (1, 2, 3)]),
    status=st.sampled_from(list(PodStatus)),
    created_s=st.sampled_from([0, b.T0_S, NOW_S]),
    usd_per_hour=st.sampled_from([0.0, 0.36]),
)
PODS_VIEWS = st.one_of(
    st.just(DOWN),
    st.builds(
        PodsObserved,
        pods=st.lists(PODS, max_size=3, unique_by=lambda pod: pod.pod_id).map(tuple),
        gone=st.frozensets(st.sampled_from(["pod-0", "pod-1", "pod-2", "pod-3", "pod-x"]), max_size=3),
    ),
)
