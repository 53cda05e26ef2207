"""Find runs that are running according to W&B but have fallen silent, and runs that it calls crashed,
preempted or killed, whether or not prime-train launched them.

Without an agent that sends heartbeats, W&B is the only source, and its data is late. So the evidence for and
against is reported, and nothing is ended, marked or launched: a person has to decide whether a run is dead.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.clock import wall_s
from prime_train.errors import ExternalError, TemporaryError, UsageError
from prime_train.providers.configured import Providers, all_rented
from prime_train.runs.remedies import go_on
from prime_train.runs.run import Run, RunState
from prime_train.runs.store import Store
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.text.formatting import span, usd
from prime_train.text.invocations import command
from prime_train.text.safe import neutralized
from prime_train.tracker.tracked_run import RUNNING, TrackerRun
from prime_train.tracker.wandb_client import KEY, wandb_from

NAME_CHARS_MIN = 4
"""Minimum length of a run's name that is compared with names of machines; shorter ones would match parts of
too many other names.
"""
STALE_MAX = 100
PAUSE_S_MIN = 60.0
"""The shortest pause between two queries; W&B itself receives updates of a run only every 30 s."""
STALE_S = 45 * 60
"""Seconds without news in W&B before a run counts as silent. W&B has been observed to lag healthy runs by 20
to 30 minutes.
"""


@dataclass(frozen=True)
class Stale:
    """A silent run. `run`: the run of prime-train with the same id, or None; `pods`: machines with a similar
    name; `unseen`: the reason why machines could not be listed; `looked_s`: when W&B was queried.
    """

    seen: TrackerRun
    run: Run | None
    pods: tuple[Pod, ...]
    looked_s: int
    unseen: str = ""


@dataclass(frozen=True)
class StaleReport:
    """The result of one of several queries. `new`: the silent runs that the previous query did not find;
    `error`: why W&B could not be queried, empty if it could.
    """

    new: tuple[Stale, ...]
    error: str = ""


@dataclass(frozen=True)
class WandbProject:
    entity: str
    project: str

    @classmethod
    def of(cls, text: str) -> "WandbProject":
        entity, _, project = text.strip().partition("/")
        if not entity or not project or "/" in project:
            raise UsageError(
                f"{text[:100]!r} is not a W&B project",
                fix=Advice("write ", Option(SettingAdvice.WANDB, "ENTITY/PROJECT")),
            )
        return cls(entity, project)


def find_stale(
    store: Store | None,
    providers: Callable[[], Providers],
    environment: Mapping[str, str],
    where: str,
    quiet_s: int = STALE_S,
) -> list[Stale]:
    """Return runs of W&B's project `where` that have been silent for more than `quiet_s` seconds, or that W&B
    says were cut off within the last days, longest silence first, at most `STALE_MAX`. Active runs of the
    store are left out, because its watchers look after them. `store`: None if there is none; `providers`:
    called if the machines are to be listed; `environment`: the variables with W&B's key.

    Raises UsageError if `where` is no project or no key is set, and ExternalError if W&B cannot be queried.
    """
    place, wandb = WandbProject.of(where), wandb_from(environment)
    if wandb is None:
        raise UsageError(
            f"{KEY} is not set", fix="set it to the API key of an account with access to the project"
        )
    now_s = store.now_s() if store is not None else wall_s()
    silent = [
        seen for seen in wandb.running(place.project, entity=place.entity) if seen.is_stale(now_s, quiet_s)
    ]
    silent += [seen for seen in wandb.cut_off(place.project, entity=place.entity) if seen.is_cut_off(now_s)]
    if not silent:
        return []
    pods = _pods(providers, environment)
    stale = [
        _stale(store, seen, pods, now_s)
        for seen in sorted(silent, key=lambda seen: seen.received_s)[:STALE_MAX]
    ]
    # Of a run of this home that is over, only one that W&B shows as running is news.
    return [one for one in stale if one.run is None or (one.run.is_over and one.seen.state == RUNNING)]


def watch_stale(find: Callable[[], list[Stale]], ended: Event, *, interval_s: float) -> Iterator[StaleReport]:
    """Call `find`, which is `find_stale` of a project, every `interval_s` seconds, but at most once in
    `PAUSE_S_MIN`, until `ended` is set, and yield what is new each time. A failure that may pass is reported;
    otherwise raises as `find_stale` does.
    """
    known: frozenset[str] = frozenset()
    while True:
        try:
            stale = find()
        except TemporaryError as error:
            asked_s = error.delay_s
            yield StaleReport((), str(error))
        else:
            asked_s = 0.0
            yield StaleReport(tuple(one for one in stale if one.seen.path not in known))
            known = frozenset(one.seen.path for one in stale)
        if ended.wait(max(interval_s, PAUSE_S_MIN, asked_s)):
            return


def description(stale: Stale) -> str:
    """Return a text for people: the known facts about the silent run, and what they can do."""
    seen, now_s = stale.seen, stale.looked_s
    silence = f"last received data {span(now_s - seen.received_s)} ago"
    said = (
        f"shows it as running, but {silence}"
        if seen.state == RUNNING
        else f"calls it {neutralized(seen.state)}, and {silence}"
    )
    named = f" ({seen.name})" if seen.name != seen.run_id else ""
    return "\n  ".join([f"{seen.path}{named}: W&B {said}: {seen.url}", *_machines(stale), _resume(stale)])


def _machines(stale: Stale) -> list[str]:
    if stale.unseen:
        return [f"it cannot be determined whether a machine of this run is left: {stale.unseen}"]
    if not stale.pods:
        return ["no machine that is visible from here has this run's name"]
    return [
        f"machine {pod.name} ({pod.pod_id}) is {pod.status.value}, {usd(pod.usd_per_hour)}/h: check it first"
        for pod in stale.pods
    ]


def _resume(stale: Stale) -> str:
    run = stale.run
    if run is None:
        again = f"WANDB_RUN_ID={stale.seen.run_id} WANDB_RESUME=must"
        return (
            f"to continue it, run its own command from its newest checkpoint with {again}; nothing "
            "was changed"
        )
    if run.state is RunState.SUCCEEDED:
        return "here the run has succeeded, but W&B did not receive that; nothing was changed"
    return (
        f"here the run is {run.state.value}; to continue it: {command(go_on(run, stale.looked_s))}; "
        "nothing was changed"
    )


def _stale(store: Store | None, seen: TrackerRun, pods: Sequence[Pod] | str, now_s: int) -> Stale:
    record = store.load(seen.run_id) if store is not None else None
    run = record.run if record is not None and record.run.spec.wandb is not None else None
    if isinstance(pods, str):
        return Stale(seen, run, (), now_s, pods)
    return Stale(seen, run, tuple(pod for pod in pods if _is_named_like(pod, seen)), now_s)


def _is_named_like(pod: Pod, seen: TrackerRun) -> bool:
    name = pod.name.lower()
    words = [word.lower() for word in (seen.run_id, seen.name) if len(word) >= NAME_CHARS_MIN]
    return len(name) >= NAME_CHARS_MIN and any(word in name or name in word for word in words)


def _pods(providers: Callable[[], Providers], environment: Mapping[str, str]) -> Sequence[Pod] | str:
    """Return all pods that can be listed from here, including those that others rented on the account, or the
    reason why they cannot be listed.
    """
    try:
        pods = [*providers().local.list(), *all_rented(environment)]
    except ExternalError as error:
        return str(error)
    return [pod for pod in pods if pod.status is not PodStatus.GONE]
