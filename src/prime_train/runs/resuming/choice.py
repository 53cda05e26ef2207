"""Chooses the checkpoint that the next attempt restores.

It is the newest complete one of the attempt that ended, or else the one from which that attempt had resumed,
as `choose_resume` says. If that checkpoint is lost in the bucket, distrusted (an attempt could not resume
from it), or holds what diverged (its figures were not finite), the newest one before it is chosen that has
none of these faults. Only checkpoints of the run's own past count: those of the attempt, those of the attempt
that it resumed from up to that step, and so on. What another attempt wrote later, after its fence for
example, is not the past of this training.

A person may ask for one step, and gets it. After a divergence the run goes back to a proven checkpoint, if
there is one. It begins anew only if no checkpoint is left that was saved with finite figures.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.buckets.keys import Place
from prime_train.checkpoints.manifest import Manifest, checkpoint_title, choose_resume, missing_blobs
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.resuming.shapes import Shape, difference, shape_of
from prime_train.runs.resuming.trust import CHECKPOINTS_TRIED_MAX, TRIED_ALONE_MAX, proven_places
from prime_train.runs.run import Distrusted, Run
from prime_train.spec.limits import STEP_MAX
from prime_train.text.invocations import command

STEPS_SHOWN_MAX = 20
COMPARED_MAX = 5
"""Number of earlier checkpoints that one is compared with."""


@dataclass(frozen=True)
class Choice:
    """What the next attempt restores, and why. `point`: None to start from step 0. `newest`: what it would be
    if no checkpoint had a fault. `why`: why it is not `newest`; empty if it is. `unresumable`: why the run
    cannot go on at all; empty if it can.
    """

    point: ResumePoint | None
    newest: ResumePoint | None
    why: str = ""
    unresumable: str = ""


def newest_of(run: Run, manifests: Iterable[Manifest], sizes: Mapping[str, int]) -> ResumePoint | None:
    """Return the newest complete checkpoint of the attempt that ended, or else the one from which it had
    resumed; None if there is none. The arguments are those of `choose`.

    A machine that ran on after its fence may have uploaded that one again. Complete, it is the same
    checkpoint, though its manifest is not the one that was chosen: to go back behind it would lose a durable
    step.
    """
    listed, attempt = list(manifests), run.current_attempt
    identity = attempt.identity if attempt is not None else ""
    point = choose_resume(listed, sizes, attempt=run.attempt, previous=run.resume, identity=identity)
    if point is None or not point.digest or point != run.resume:
        return point
    again = (m for m in _past(run, listed) if m.key == point.key and not missing_blobs(m, sizes))
    return next((m.point for m in again), point)


def choose(
    run: Run,
    manifests: Iterable[Manifest],
    sizes: Mapping[str, int],
    *,
    proven: Collection[Place] = (),
    lost: int | None = None,
) -> Choice:
    """Return what the run's next attempt restores. `manifests`: all manifests of the run in the bucket that
    can be read; `sizes`: the bytes of its blobs there, by key; `proven`: checkpoints that are marked as
    proven there, besides those that the run itself knows; `lost`: the step of the newest checkpoint, if it
    was committed and is not whole in the bucket any more.
    """
    listed = list(manifests)
    # the blobs of another run are checked at the launch
    whole = [m for m in listed if m.blobs_of or not missing_blobs(m, sizes)]
    newest = newest_of(run, listed, sizes)
    if lost is not None:
        before = [m for m in _past(run, whole) if m.step < lost]
        newest = max(before, key=lambda m: (m.step, m.attempt)).point if before else None
    if run.step_asked is not None:
        return _asked(run, run.step_asked, whole, newest)
    if newest is None:
        return Choice(None, None)
    if run.resume_failures >= CHECKPOINTS_TRIED_MAX:
        return Choice(newest, newest, unresumable=_all_failed(run))
    before = list(_past(run, whole))
    faults = _Faults(run, {m.key: m for m in whole}, before, {*proven, *proven_places(run.attempts)})
    reason = faults.of(newest)
    if not reason and not run.rolls_back:
        return Choice(newest, newest)
    past = [m.point for m in before if (m.step, m.attempt) <= (newest.step, newest.attempt)]
    points = sorted(
        {p.key: p for p in (*past, newest)}.values(), key=lambda p: (p.step, p.attempt), reverse=True
    )
    good = [p for p in points if not faults.of(p)]
    loadable = [p for p in points if not faults.is_distrusted(p)]
    # What was restored before figures that were not finite is in doubt, but better than nothing if its own
    # figures were finite.
    good = good or [p for p in loadable if faults.is_finite(p)]
    if run.rolls_back:
        known = {*proven, *proven_places(run.attempts)}
        good = [p for p in good if (p.step, p.attempt) in known] or good
        return _rolled_back(good[0] if good else None, newest)
    if not loadable and run.resume_failures < TRIED_ALONE_MAX:
        return Choice(newest, newest, f"once more, because no other is left: {reason}")
    if not loadable:
        return Choice(newest, newest, unresumable=_all_failed(run))
    point = (good or loadable)[0]
    if point == newest:
        return Choice(newest, newest)  # nothing before it is better
    return Choice(point, newest, f"instead of {_title(newest)}: {reason}")


def steps_text(manifests: Iterable[Manifest]) -> str:
    """Return the steps of these checkpoints, newest first, for an error about a step that is not among
    them.
    """
    steps = sorted({m.step for m in manifests}, reverse=True)
    more = f" and {len(steps) - STEPS_SHOWN_MAX} older" if len(steps) > STEPS_SHOWN_MAX else ""
    return f"{', '.join(map(str, steps[:STEPS_SHOWN_MAX]))}{more}" if steps else "none"


class _Faults:
    """The faults of checkpoints; `by_key`: the manifests that can be read; `past`: those of the run's own
    past; `proven`: checkpoints that a trainer could resume from.
    """

    def __init__(
        self, run: Run, by_key: Mapping[str, Manifest], past: Sequence[Manifest], proven: Collection[Place]
    ) -> None:
        self._run, self._by_key = run, by_key
        self._past, self._proven = sorted(past, key=lambda m: (m.step, m.attempt)), proven
        self._distrusted = {one.place: one for one in run.distrusted}

    def is_distrusted(self, point: ResumePoint) -> bool:
        return (point.step, point.attempt) in self._distrusted

    def is_finite(self, point: ResumePoint) -> bool:
        """Return whether the figures with which the checkpoint was saved are known to be finite."""
        return (manifest := self._by_key.get(point.key)) is not None and manifest.finite is True

    def of(self, point: ResumePoint) -> str:
        """Return why the checkpoint should not be restored, as text; "" if nothing speaks against it."""
        one = self._distrusted.get((point.step, point.attempt))
        if one is not None:
            return f"attempt {one.failed} could not resume from it ({one.why})"
        manifest = self._by_key.get(point.key)
        if manifest is not None and manifest.finite is False:
            since = (
                f" since step {manifest.not_finite_since}" if manifest.not_finite_since is not None else ""
            )
            return f"its loss was not finite{since}"
        if self._run.finite_limit is not None and point.step > self._run.finite_limit:
            return f"the loss is not known to be finite after step {self._run.finite_limit}"
        return self._cut_off(manifest) if manifest is not None else ""

    def _cut_off(self, manifest: Manifest) -> str:
        """Return what shows that the save of the checkpoint was cut off by the end of the machine; "" if
        nothing does. One from which a trainer resumed, or after which it went on, is whole however it looks.
        """
        is_known = (
            manifest.seen_whole or manifest.blobs_of or (manifest.step, manifest.attempt) in self._proven
        )
        if is_known or (self._run.trained_step is not None and manifest.step >= self._run.trained_step):
            return ""
        earlier = [m for m in self._past if m.step < manifest.step][-COMPARED_MAX:]
        what = difference(_shape(manifest), [_shape(m) for m in earlier])
        return f"it {what}, so its save was probably cut off" if what else ""


def _shape(manifest: Manifest) -> Shape:
    return shape_of((file.path, file.size) for file in manifest.files)


def _asked(run: Run, step: int, whole: list[Manifest], newest: ResumePoint | None) -> Choice:
    identities = {0: "", **{attempt.number: attempt.identity for attempt in run.attempts}}
    of_it = [m for m in whole if m.step == step and identities.get(m.attempt, m.identity) == m.identity]
    if not of_it:
        text = (
            f"step {step}, from which the run was to be resumed, is not whole in the bucket; "
            "complete "
            f"there: {steps_text(whole)}"
        )
        return Choice(newest, newest, unresumable=text)
    return Choice(max(of_it, key=lambda m: m.attempt).point, newest, "as a person asked")


def _rolled_back(point: ResumePoint | None, newest: ResumePoint) -> Choice:
    why = (
        "after the divergence, the newest checkpoint with finite figures, and a proven one if there "
        "is "
        f"one; the newest is {_title(newest)}"
    )
    return Choice(
        point, newest, why if point is not None else "no checkpoint from before the divergence is left"
    )


def _past(run: Run, whole: Iterable[Manifest]) -> Iterator[Manifest]:
    limits = _limits(run)
    return (m for m in whole if m.step <= limits.get((m.attempt, m.identity), -1))


def _limits(run: Run) -> dict[tuple[int, str], int]:
    """Return up to which step the checkpoints of each attempt are the run's past, by number and identity."""
    limits: dict[tuple[int, str], int] = {}
    limit, number = STEP_MAX, run.attempt
    for attempt in reversed(run.attempts):
        if attempt.number > number:
            continue  # it resumed from elsewhere, and nothing of it was continued
        limits[attempt.number, attempt.identity] = limit
        limit = min(limit, attempt.resumed_step)
        # Older records do not say whose checkpoint it was: then that of the attempt before.
        number = attempt.resumed_attempt if attempt.resumed_attempt is not None else attempt.number - 1
    limits[0, ""] = limit
    return limits


def _all_failed(run: Run) -> str:
    failed = sorted(run.distrusted, key=lambda one: one.failed, reverse=True)[:CHECKPOINTS_TRIED_MAX]
    each = "; ".join(f"{_title(one)} in attempt {one.failed}: {one.why.rstrip('.')}" for one in failed)
    call = Call(Operation.RESUME, run.run_id, (Option(SettingAdvice.STEP, "N"),))
    return (
        f"the trainer could not resume from any of the checkpoints that were tried: {each}. To "
        "choose "
        f"one: {command(call)}"
    )


def _title(one: ResumePoint | Distrusted) -> str:
    return checkpoint_title(one.step, one.attempt)
