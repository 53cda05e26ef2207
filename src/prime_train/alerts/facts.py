"""The facts shown next to an alert's text, by kind of alert: figures of the run and of the alert's
attempt.
"""

from collections.abc import Callable, Iterator

from prime_train.buckets.keys import evidence_prefix
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.figures import LedgerPart, RunFigures
from prime_train.runs.remedies import remedy
from prime_train.runs.run import Alert, Attempt
from prime_train.spec.causes import POLICY, Cause
from prime_train.text.formatting import span, usd
from prime_train.text.invocations import worded

IN_COMMON_MAX = 3
"""How many of the newest attempts are compared for what they share."""

VANISHED = frozenset({Cause.PREEMPTED, Cause.MACHINE_LOST, Cause.SILENT})
"""Causes of attempts whose machines had little time to report anything."""

Facts = Iterator[tuple[str, str]]


def facts_of(alert: Alert, now: RunFigures) -> Facts:
    """Yield name and value of each fact. The run may have progressed since the alert; the attempt is the
    alert's own if it is still listed.
    """
    attempt = next((a for a in now.run.attempts if a.number == alert.attempt), None)
    for describe in _BY_KIND.get(alert.kind, ()):
        yield from describe(now, attempt)


def _machine(now: RunFigures, attempt: Attempt | None) -> Facts:
    if attempt is not None:
        offer = attempt.offer
        gpus = f"{offer.gpu_count} × {offer.gpu}, " if offer.gpu else ""
        yield (
            "Machine",
            f"{gpus}{offer.provider}, {'spot' if offer.spot else 'on demand'}, {usd(offer.usd_per_hour)} an "
            "hour",
        )
        if attempt.variant:
            yield "Variant", attempt.variant


def _loss(now: RunFigures, attempt: Attempt | None) -> Facts:
    """Yield what was observed of the end of an attempt."""
    if attempt is None or attempt.fenced_s is None:
        return
    yield "Last step", f"{attempt.last_step:,}, in the bucket up to {attempt.durable_step:,}"
    if attempt.last_sign_s is not None:
        yield (
            "Last heartbeat or commit",
            f"{span(attempt.fenced_s - attempt.last_sign_s)} before the attempt was fenced",
        )
    yield (
        "It lasted",
        f"{span(attempt.fenced_s - attempt.launched_s)}, "
        f"{usd(ledger.attempt_totals(attempt, now.now_s).usd)}",
    )


def _evidence(now: RunFigures, attempt: Attempt | None) -> Facts:
    if (
        attempt is None
        or attempt.first_heartbeat_s is None
        or (attempt.evidence_requested_s is None and attempt.fenced_s is None)
    ):
        return
    whether = ", if the machine could still upload it" if attempt.cause in VANISHED else ""
    yield "Evidence", f"{evidence_prefix(now.run.run_id, attempt.number)} in the bucket{whether}"


def _advice(now: RunFigures, attempt: Attempt | None) -> Facts:
    cause = attempt.cause if attempt is not None and attempt.cause is not None else now.run.cause
    policy = POLICY[cause] if cause is not None else None
    if (
        cause is not None
        and policy is not None
        and (advice := policy.advice if now.run.is_over else policy.advice_while_live)
    ):
        yield "What to do", worded(remedy(now.run, cause, advice))


def _price_of_the_gap(now: RunFigures, attempt: Attempt | None) -> Facts:
    """Yield the cost of a recovery: the steps to repeat, and the money spent without a new step."""
    before = next(
        (a for a in now.run.attempts if attempt is not None and a.number == attempt.number - 1), None
    )
    if attempt is None or before is None:
        return
    again = max(0, attempt.best_step_before - attempt.resumed_step)
    yield "Resumed from", f"step {attempt.resumed_step:,}; {again:,} steps are repeated"
    yield "The gap cost", usd(gap_usd(before, attempt, now.now_s))


def gap_usd(before: Attempt, after: Attempt, now_s: int) -> float:
    """Return the dollars paid from the last durable step of one attempt to the first step of the next, in
    which no new step was made.
    """
    lost, back = ledger.attempt_totals(before, now_s), ledger.attempt_totals(after, now_s)
    steps = before.last_step - before.resumed_step
    share = (
        max(0, before.last_step - max(after.resumed_step, before.resumed_step)) / steps if steps > 0 else 0.0
    )
    lost_s = (lost.useful_s + lost.recomputed_s) * share + lost.detection_s + lost.teardown_s
    back_s = back.provision_s + back.restore_s
    return (lost_s * before.offer.usd_per_hour + back_s * after.offer.usd_per_hour) / 3600


def _money(now: RunFigures, attempt: Attempt | None) -> Facts:
    left_usd, burn = now.run.spec.budget.usd - now.totals.usd, ledger.burn_usd_per_s(now.run)
    yield "Spent", f"{now.money}, {now.paid} of paid time"
    if now.trained:
        yield "Training", now.trained
    if now.deadline:
        yield "Deadline", now.deadline
    if burn > 0 and left_usd > 0:
        yield "The budget lasts for", f"{span(left_usd / burn)} at {usd(burn * 3600)} an hour"


def _common(now: RunFigures, attempt: Attempt | None) -> Facts:
    """Yield what the last attempts share, such as cause, machine or step; nothing if there are fewer than
    two.
    """
    last = [a for a in now.run.attempts if a.fenced_s is not None][-IN_COMMON_MAX:]
    if len(last) < 2:
        return
    shared = [
        ("cause", {POLICY[a.cause].title if a.cause is not None else "" for a in last}),
        ("provider", {a.offer.provider for a in last}),
        ("GPU", {a.offer.gpu for a in last}),
        ("offer", {a.offer.offer_id for a in last}),
        ("last step", {f"{a.last_step:,}" for a in last}),
        ("words", {a.detail if a.cause is None or a.detail != POLICY[a.cause].title else "" for a in last}),
    ]
    same = [f"{name}: {next(iter(values))}" for name, values in shared if len(values) == 1 and any(values)]
    yield (
        f"The last {len(last)} attempts share",
        "; ".join(same) if same else "nothing: each ended for a different reason",
    )


def _ledger(now: RunFigures, attempt: Attempt | None) -> Facts:
    if now.totals.paid_s:
        yield (
            "Paid time",
            ", ".join(
                f"{_WORDS[part.name]} {part.share}" for part in sorted(now.parts, key=_order) if part.seconds
            ),
        )
    yield (
        "Attempts",
        f"{now.attempts}; {usd(now.totals.usd_wasted)} of {usd(now.totals.usd)} produced no new step",
    )


_WORDS = {
    "useful": "useful",
    "recomputed": "done again",
    "after": "steps after training",
    "provision": "machines starting up",
    "restore": "set-up",
    "detection": "noticing losses",
    "teardown": "giving back",
}
"""Labels of the ledger's parts, in display order."""


def _order(part: LedgerPart) -> int:
    return list(_WORDS).index(part.name)


_FactsOf = Callable[[RunFigures, Attempt | None], Facts]
_BY_KIND: dict[AlertKind, tuple[_FactsOf, ...]] = {
    AlertKind.LAUNCHED: (_machine,),
    AlertKind.RELAUNCHED: (_machine,),
    AlertKind.TRAINING: (_machine,),
    AlertKind.RECOVERED: (_price_of_the_gap, _machine),
    AlertKind.LOST: (_loss, _advice, _evidence),
    AlertKind.STALLED: (_machine, _evidence),
    AlertKind.SILENT: (_machine,),
    AlertKind.CHEAPER: (_machine, _money),
    AlertKind.BUDGET: (_money,),
    AlertKind.DRAINING: (_money,),
    AlertKind.UNSAVED: (_machine,),
    AlertKind.UPLOADS: (_machine,),
    AlertKind.KEPT: (_machine, _money),
    AlertKind.FUNDS: (_money,),
    AlertKind.SUCCEEDED: (_money, _ledger),
    AlertKind.FAILED: (_common, _advice, _money, _evidence),
    AlertKind.STOPPED: (_common, _advice, _money, _evidence),
    AlertKind.CANCELLED: (_money,),
}
