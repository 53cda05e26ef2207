"""Find runs that are running according to W&B but have fallen silent, whoever launched them.

Where no agent sends heartbeats, W&B is the only witness, and its data is late. So the evidence for and against is reported, and nothing is
ended, marked or launched: a person has to decide whether a run is dead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.adapters.tracker_wandb import KEY, RunSeen, Wandb, wandb_from
from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.providers import all_rented
from prime_train.core.errors import UsageError
from prime_train.core.run import Run, RunState
from prime_train.core.text.formatting import span, usd
from prime_train.core.verdict import Pod, PodStatus
from prime_train.reports.remedies import go_on

NAME_CHARS_MIN = 4
"""Shorter names would match parts of too many other names."""
STALE_MAX = 100


@dataclass(frozen=True)
class Stale:
    """A silent run. `run`: the run of prime-train with the same id, or None; `pods`: machines with a similar name; `unseen`: the reason why
    machines could not be listed."""

    seen: RunSeen
    run: Run | None
    pods: tuple[Pod, ...]
    unseen: str = ""


@dataclass(frozen=True)
class Place:
    entity: str
    project: str

    @classmethod
    def of(cls, text: str) -> "Place":
        entity, _, project = text.strip().partition("/")
        if not entity or not project or "/" in project:
            raise UsageError(f"{text[:100]!r} is no project of W&B", fix="write --wandb ENTITY/PROJECT")
        return cls(entity, project)


def asked(home: Home) -> Wandb:
    wandb = wandb_from(home.environment)
    if wandb is None:
        raise UsageError(f"{KEY} is not set", fix="set it to the key of an account that may see the project")
    return wandb


def find_stale(home: Home, wandb: Wandb, place: Place, now_s: int, quiet_s: int) -> list[Stale]:
    """Return runs silent for more than `quiet_s` seconds, longest silence first, at most `STALE_MAX`. Active runs of this home are left
    out, because its watchers look after them. Raises OutsideError if W&B cannot be queried."""
    silent = [seen for seen in wandb.running(place.project, entity=place.entity) if seen.is_stale(now_s, quiet_s)]
    if not silent:
        return []
    pods = _pods(home)
    stale = [_stale(home, seen, pods) for seen in sorted(silent, key=lambda seen: seen.heard_s)[:STALE_MAX]]
    return [one for one in stale if one.run is None or one.run.is_over]


def told(stale: Stale, now_s: int) -> str:
    """Return a text for people: what is known of the silent run, and what they may do."""
    seen = stale.seen
    heard = f"last heard of it {span(now_s - seen.heard_s)} ago"
    named = f" ({seen.name})" if seen.name != seen.run_id else ""
    return "\n  ".join([f"{seen.path}{named}: W&B calls it running, and {heard}: {seen.url}", *_machines(stale), _resume(stale, now_s)])


def _machines(stale: Stale) -> list[str]:
    if stale.unseen:
        return [f"whether a machine of it is left cannot be said: {stale.unseen}"]
    if not stale.pods:
        return ["no machine that can be seen from here is named like it"]
    return [f"machine {pod.name} ({pod.pod_id}) is {pod.status.value}, {usd(pod.usd_per_hour)}/h: look there first" for pod in stale.pods]


def _resume(stale: Stale, now_s: int) -> str:
    run = stale.run
    if run is None:
        again = f"WANDB_RUN_ID={stale.seen.run_id} WANDB_RESUME=must"
        return f"to let it go on: its own command, from its newest checkpoint, with {again}; nothing was done"
    if run.state is RunState.SUCCEEDED:
        return "here it has succeeded: W&B has not heard of it; nothing was done"
    return f"here it is {run.state.value}; to let it go on: {go_on(run, now_s)}; nothing was done"


def _stale(home: Home, seen: RunSeen, pods: Sequence[Pod] | str) -> Stale:
    held = home.store().load(seen.run_id) if home.has_runs else None
    run = held.run if held is not None and held.run.spec.wandb is not None else None
    if isinstance(pods, str):
        return Stale(seen, run, (), pods)
    return Stale(seen, run, tuple(pod for pod in pods if _is_named_like(pod, seen)))


def _is_named_like(pod: Pod, seen: RunSeen) -> bool:
    name = pod.name.lower()
    words = [word.lower() for word in (seen.run_id, seen.name) if len(word) >= NAME_CHARS_MIN]
    return len(name) >= NAME_CHARS_MIN and any(word in name or name in word for word in words)


def _pods(home: Home) -> Sequence[Pod] | str:
    """Return all pods that can be listed from here, including those that others rented on the account, or the reason why they cannot be
    listed."""
    from prime_train.ports import OutsideError

    try:
        pods = [*home.local_pods().list(), *all_rented(home.environment)]
    except OutsideError as error:
        return str(error)
    return [pod for pod in pods if pod.status is not PodStatus.GONE]
