"""Play a drill: look, rent the cheapest machine, wait for its agent's first heartbeat and checkpoint, end it,
and give everything back.
"""

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.app.embedded import control_plane
from prime_train.app.home import PORT, Home
from prime_train.app.interruption import sigterm_leaves, uninterrupted
from prime_train.buckets.keys import run_prefix
from prime_train.environment import BUCKET, PUBLIC_URL
from prime_train.errors import ExternalError, PermanentError, UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.code.archive import survey
from prime_train.launch.launch import LaunchPlan, launch
from prime_train.launch.provider_drill.machine import GivenBack, ObservedEnd, give_back, lose
from prime_train.launch.provider_drill.recording import Recorder
from prime_train.launch.provider_drill.stage import Limits, drill_home, drill_spec, secrets_of, written_tree
from prime_train.launch.provider_drill.steps import Left, Outcome, Step, StepResult, Stopped
from prime_train.providers.answers.known import Judged
from prime_train.providers.kinds import LOCAL, PROVIDERS
from prime_train.providers.look import look_with
from prime_train.providers.rental.answers import known_answers
from prime_train.providers.setup import known
from prime_train.providers.words import in_a_line
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Run
from prime_train.runs.store import RunRecord
from prime_train.spec.causes import Cause
from prime_train.text.formatting import span, usd

INTERVAL_S = 1.0
LOOK_S = 0.2
RENT_S_MAX = 600.0
"""Seconds after which nothing is waited for any more that would be rented."""
REFUSED_MAX = 3
"""Number of machines in a row that may be no longer for rent."""
NOT_RENTED = {
    LOCAL: "provider local rents nothing: prime-train trains on this machine itself",
    "ssh": "machines of your own are not rented, and so a drill has nothing to rent and nothing to give back",
}
"""Why there is no drill of these providers."""
_WAITING = (AlertKind.FUNDS, AlertKind.NO_CAPACITY, AlertKind.BUCKET)


@dataclass(frozen=True)
class Quote:
    """What is about to be rented: the cheapest machine, and the limits of the drill."""

    offer: Offer
    limits: Limits

    @property
    def question(self) -> str:
        one, limits = self.offer, self.limits
        what = f"{one.gpu_count}x {one.gpu}" if one.gpu else "a machine without GPU"
        kind = "spot" if one.spot else "on-demand"
        most = (
            f"for at most {span(3600 * limits.paid_h)}, and {usd(one.usd_per_hour * limits.paid_h)} "
            "at its price"
        )
        other = (
            f"if it is gone by then, another one of at most {usd(limits.usd_per_hour)}/h, so "
            "that "
            f"nothing costs above {usd(limits.usd)}"
        )
        return (
            f"Rent {what} ({kind}) at {PROVIDERS[one.provider].title} for {usd(one.usd_per_hour)}/h, {most}; "
            f"{other}?"
        )


@dataclass
class Drill:
    """A drill, as far as it has come. `port`: on which the control plane listens, 0 for any; `offer`: the
    machine that was rented; `interrupted`: whether a person ended it.
    """

    provider: str
    limits: Limits
    tell: Callable[[StepResult], None]
    note: Callable[[str], None]
    recorder: Recorder
    port: int = 0
    began_s: float = field(default_factory=time.monotonic)
    results: dict[Step, StepResult] = field(default_factory=dict)
    run_id: str = ""
    offer: Offer | None = None
    paid_s: float = 0.0
    loss: ObservedEnd | None = None
    given_back: GivenBack | None = None
    interrupted: bool = False

    @property
    def steps(self) -> list[StepResult]:
        return [self.results.get(step, StepResult(step, Outcome.NOT_REACHED)) for step in Step]

    @property
    def judged(self) -> list[Judged]:
        return self.recorder.judged()

    @property
    def left(self) -> tuple[Left, ...]:
        return self.given_back.left if self.given_back is not None else ()

    @property
    def left_unknown(self) -> str:
        return self.given_back.unknown if self.given_back is not None else ""

    @property
    def usd(self) -> float:
        """Return what the machine has cost by its price."""
        return self.offer.usd_per_hour * self.paid_s / 3600 if self.offer is not None else 0.0

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began_s

    @property
    def rented_s(self) -> float | None:
        """Return the seconds from the beginning until a machine was rented; None: none was."""
        rented = self.results.get(Step.RENT)
        return rented.at_s if rented is not None and rented.outcome is Outcome.DONE else None

    def done(self, step: Step, text: str) -> None:
        self._told(StepResult(step, Outcome.DONE, text, self.elapsed_s))

    def failed(self, step: Step, text: str) -> None:
        self._told(StepResult(step, Outcome.FAILED, text, self.elapsed_s))

    def _told(self, result: StepResult) -> None:
        self.results[result.step] = result
        self.tell(result)


def where_to_end(provider: str) -> str:
    """Return where a person ends a machine that could not be given back, in words."""
    return f"end it at {PROVIDERS[provider].machines_page or PROVIDERS[provider].title}"


def refuse_without_renting(name: str) -> None:
    """Raise UsageError if there is no such provider, or none of its machines is rented."""
    known(name)
    if name in NOT_RENTED:
        raise UsageError(NOT_RENTED[name], fix="launch a run there instead, such as configs/demo.yaml")


@contextmanager
def drilled(
    home: Home,
    name: str,
    limits: Limits,
    *,
    agree: Callable[[str], None],
    tell: Callable[[StepResult], None],
    note: Callable[[str], None],
    end: Callable[[Drill], None],
) -> Iterator[Drill]:
    """Play a drill of this provider and yield it once it is over and every machine is given back; whatever
    happens, the latter is done.

    `agree` is called with the question whether to rent, and raises if the answer is no. `tell` is called with
    each step's result, `note` with what happens meanwhile, `end` with the drill once it is over, also if it
    was interrupted. Raises UsageError if nothing could be rented or reached, before anything is rented.
    """
    refuse_without_renting(name)
    recorder = Recorder(known_answers(name), secrets_of(home, name))
    drill = Drill(name, limits, tell, note, recorder, _port(home))
    with sigterm_leaves(), drill_home(home, name, recorder) as here:
        _refuse_unreachable(here, name)
        _clear_up(here, drill)
        offer = _looked(here, drill)
        agree(Quote(offer, limits).question)
        drill.began_s = time.monotonic()
        try:
            _play(here, drill)
        except (KeyboardInterrupt, SystemExit):
            drill.interrupted = True
            raise
        finally:
            with uninterrupted():
                _end(here, drill)
                end(drill)
        yield drill


def _port(home: Home) -> int:
    """Return the port to which the address leads that machines call; 0 (any) if there is none."""
    if not home.environment.get(PUBLIC_URL):
        return 0
    return PORT if home.elsewhere else home.port()


def _refuse_unreachable(here: Home, name: str) -> None:
    """Raise UsageError if the provider's machines could not work with a control plane here."""
    why = here.providers(here.public_url("http://127.0.0.1")).of(name).unreachable_reason()
    if why:
        fix = f"set {PUBLIC_URL} and {BUCKET} as for runs that are left alone"
        raise UsageError(why, fix=fix, code=Exit.EXTERNAL_REFUSED)


def _clear_up(here: Home, drill: Drill) -> None:
    """Give back what an earlier drill had to leave."""
    found = here.pods().list()
    if not found:
        return
    drill.note(f"an earlier drill has left {', '.join(pod.name for pod in found)}: giving it back first")
    after = give_back(here.pods(), tuple, drill.note)
    if after.left or after.unknown:
        names = ", ".join(one.name for one in after.left) or "a machine"
        raise PermanentError(
            f"{names} cannot be given back: {after.unknown or after.left[0].why}; "
            f"{where_to_end(drill.provider)}"
        )


def _looked(here: Home, drill: Drill) -> Offer:
    """Look at the account and the offers, and return the cheapest one. Raises UsageError if none fits the
    limits.
    """
    hardware, limits = drill_spec(drill.provider, drill.limits, Path()).hardware, drill.limits
    found = look_with(
        drill.provider,
        here.providers().of(drill.provider),
        hardware.model_copy(update={"usd_per_hour_max": None}),
    )
    drill.done(Step.LOOK, in_a_line(found))
    title, what = PROVIDERS[drill.provider].title, "spot machine" if limits.spot else "machine"
    if found.cheapest is None:
        raise UsageError(
            f"{title} has no {what} for rent now", fix="try again later", code=Exit.EXTERNAL_REFUSED
        )
    if found.cheapest.usd_per_hour > limits.usd_per_hour:
        least_usd = math.ceil(100 * found.cheapest.usd_per_hour * limits.paid_h) / 100
        message = (
            f"the cheapest {what} at {title} costs {usd(found.cheapest.usd_per_hour)}/h, and "
            "more "
            f"than {usd(limits.usd)} in the time"
        )
        fix = Advice(f"allow {usd(least_usd)}: ", Option(SettingAdvice.USD_MAX, f"{least_usd:g}"))
        raise UsageError(message, fix=fix, code=Exit.EXTERNAL_REFUSED)
    return found.cheapest


def _play(here: Home, drill: Drill) -> None:
    """Rent, wait for the checkpoint, and end the machine. A step that fails is told, and is the last."""
    try:
        attempt = _trained(here, drill)
        if attempt.pod_id is None:
            raise Stopped("the machine has no id")
        drill.loss = lose(here.pods(), attempt.pod_id)
        drill.done(Step.LOSS, drill.loss.text)
    except (Stopped, ExternalError) as error:
        step = next(step for step in Step if step not in drill.results)
        drill.failed(step, drill.recorder.text(str(error)))


def _trained(here: Home, drill: Drill) -> Attempt:
    """Launch the run, and return its attempt once that has committed a checkpoint. Raises Stopped if that
    will not happen. The control plane has ended then, so that nothing else is rented.
    """
    with tempfile.TemporaryDirectory(prefix="prime-train-drill-") as folder:
        spec = drill_spec(drill.provider, drill.limits, written_tree(Path(folder)))
        with control_plane(here, port=drill.port, interval_s=INTERVAL_S):
            drill.run_id = launch(here, spec, LaunchPlan(survey(Path(spec.trainer.code.folder)), "")).run_id
            store, pause = here.store(), threading.Event()
            while True:
                record = store.load(drill.run_id)
                if record is None:
                    raise Stopped("the run of the drill is no longer in its store")
                attempt = record.run.attempts[-1] if record.run.attempts else None
                _observe(drill, record, attempt)
                if Step.CHECKPOINT in drill.results and attempt is not None:
                    return attempt
                why = _why_over(record.run, attempt)
                if why:
                    raise Stopped(why)
                # Raise Stopped if nothing was rented for a long time, or the machine has had its time.
                longest_s, began_s = (
                    (drill.limits.seconds, drill.rented_s)
                    if drill.rented_s is not None
                    else (RENT_S_MAX, 0.0)
                )
                if drill.elapsed_s - began_s > longest_s:
                    raise Stopped(f"not within {span(longest_s)}; {_last_word(record.run)}")
                pause.wait(LOOK_S)


def _observe(drill: Drill, record: RunRecord, attempt: Attempt | None) -> None:
    """Tell the steps that have been made."""
    if attempt is None or attempt.cause is not None or attempt.pod_id is None:
        return
    lease = record.lease
    if Step.RENT not in drill.results:
        drill.offer = attempt.offer
        drill.done(Step.RENT, f"{attempt.offer.offer_id} at {usd(attempt.offer.usd_per_hour)}/h")
    if Step.INSTALL not in drill.results and attempt.agent_put_s is not None:
        drill.done(Step.INSTALL, "the machine is ready, and the agent is being installed")
    if (
        Step.HEARTBEAT not in drill.results
        and lease.attempt == attempt.number
        and lease.heartbeat is not None
    ):
        if Step.INSTALL not in drill.results:
            return
        drill.done(Step.HEARTBEAT, "the agent works, and reaches the control plane")
    if Step.CHECKPOINT not in drill.results and Step.HEARTBEAT in drill.results and lease.committed_step > 0:
        drill.done(
            Step.CHECKPOINT, f"step {lease.committed_step} is in the bucket, and its manifest was read back"
        )


def _why_over(run: Run, attempt: Attempt | None) -> str:
    """Return why no checkpoint will come; empty while one may."""
    ended = [one for one in run.attempts if one.cause is not None]
    failed = next(
        (one for one in ended if one.cause is not Cause.NO_CAPACITY),
        ended[-1] if len(ended) >= REFUSED_MAX else None,
    )
    if failed is not None and failed.cause is not None:
        return f"{failed.cause.value.replace('_', ' ')}: {failed.detail or run.why}"
    if run.is_over:
        return run.why
    if attempt is None:
        return next((notice.text for notice in run.notices if notice.kind in _WAITING), "")
    return ""


def _last_word(run: Run) -> str:
    """Return what the control plane has noted last of the run, or at least its state."""
    return next(
        (notice.text for notice in reversed(run.notices) if notice.text), f"the run is {run.state.value}"
    )


def _end(here: Home, drill: Drill) -> None:
    """Give back what was rented, and remove what the run left in the bucket."""
    drill.given_back = given = give_back(here.pods(), lambda: _attempts(here, drill.run_id), drill.note)
    # The seconds since the machine was rented, for which it is paid at most.
    drill.paid_s = drill.elapsed_s - drill.rented_s if drill.rented_s is not None else 0.0
    if given.left or given.unknown:
        why = [
            *(f"{one.name}: {one.why}" for one in given.left),
            *filter(None, [given.unknown]),
            where_to_end(drill.provider),
        ]
        drill.failed(Step.GIVE_BACK, "; ".join(why))
    elif drill.run_id:
        drill.done(Step.GIVE_BACK, "the provider lists no machine of this drill, and knows none by its id")
    try:
        bucket = here.bucket()
        for stat in list(bucket.list(run_prefix(drill.run_id))) if drill.run_id else ():
            bucket.delete(stat.key)
    except ExternalError as error:
        drill.note(
            f"{here.bucket_url} still has the folder {run_prefix(drill.run_id)}, which can be deleted: "
            f"{error}"
        )


def _attempts(here: Home, run_id: str) -> Sequence[Attempt]:
    record = here.store().load(run_id) if run_id else None
    return record.run.attempts if record is not None else ()
