"""Reconciles one run by one step, or until nothing is left to do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from prime_train.errors import ExternalError, UsageError
from prime_train.providers.kinds import allowed_providers
from prime_train.runs import decide as d
from prime_train.runs.funds import Funds
from prime_train.runs.run import ACTIVE_STATES, Run, RunState
from prime_train.runs.verdict import Verdict, judge, with_tracker_report
from prime_train.watch.context import Context, Snapshot, Step
from prime_train.watch.execute import carry_out
from prime_train.watch.means import away_alert, leave_run, providers_elsewhere, why_left
from prime_train.watch.moves import look_for_move
from prime_train.watch.observe import fresh, gather, look, see
from prime_train.watch.outbox import enqueue

STEPS_A_RUN_MAX = 12


STEP_S_MAX = 60
"""Longest time in seconds for gathering the evidence of a step. If it took longer, nothing is decided,
because the evidence may be outdated.
"""


def reconcile(
    context: Context,
    run_id: str,
    now_s: int,
    snapshot: Snapshot | None = None,
    *,
    clock: Callable[[], int] | None = None,
) -> Step:
    """Make one step for one run, as of `now_s`. With a `clock`, nothing is decided if this process stood
    still meanwhile.
    """
    record = context.store.load(run_id)
    if record is None or (context.is_guest and not _is_seen(context, record.run)):
        return Step(None, False)
    snapshot = snapshot if snapshot is not None else see(context, now_s)
    evidence = gather(context, record, snapshot, now_s)
    move = look_for_move(context, record, snapshot.funds, now_s)
    if clock is not None and clock() - now_s > STEP_S_MAX:
        return Step(None, False)
    verdict: Verdict | None = None
    if record.run.state in ACTIVE_STATES:
        record = replace(record, run=with_tracker_report(record.run, evidence))
        verdict = judge(record.run, evidence, now_s)
    lacking = [
        name
        for name in record.run.spec.secrets
        if context.secrets is not None and name not in context.secrets
    ]
    funds = _paying(record.run, snapshot.funds)
    not_allowed, policy_unread = _judged(context, record.run)
    decision = d.decide(
        record.run,
        verdict,
        evidence.pods,
        now_s,
        lacking=lacking,
        funds=funds,
        move=move,
        not_allowed=not_allowed,
        policy_unread=policy_unread,
    )
    if isinstance(decision, d.Launch) and (names := providers_elsewhere(context, record.run, now_s)):
        return _left(context, record.run, names, now_s)
    saved = carry_out(context, record, decision, now_s, wallets=snapshot.funds)
    if saved:
        context.elsewhere.runs.pop(run_id, None)
    if saved and not isinstance(decision, d.Wait):
        context.watched(run_id, type(decision).__name__, describe(decision))
    return Step(decision, saved)


def _left(context: Context, run: Run, providers: Sequence[str], now_s: int) -> Step:
    """Leave a launch to watchers that have these providers, with nothing saved: its time is not put off."""
    leave_run(context, run, why_left(context, providers, now_s), now_s)
    alert = away_alert(context, run, providers, now_s)
    if alert is not None:
        enqueue(context, alert)
    return Step(None, False)


def _judged(context: Context, run: Run) -> tuple[str, str]:
    """Return what the run asks beyond the operator's policy, and why the policy cannot be read; each empty if
    nothing. It is read only where a machine may be rented next.
    """
    if run.state is not RunState.QUEUED:
        return "", ""
    try:
        return context.not_allowed(run), ""
    except (UsageError, ExternalError) as error:
        return "", str(error)


def _is_seen(context: Context, run: Run) -> bool:
    """Return whether all providers of this run can be read from here."""
    return context.providers is None or all(
        name in context.providers for name in allowed_providers(run.spec.hardware)
    )


def _paying(run: Run, funds: Mapping[str, Funds]) -> Funds | None:
    """Return the wallet that pays for this run; before a machine is rented, the fullest one of those that
    could. None if it cannot be read, or if one that could pay cannot be. The run's own machine counts also
    while the account does not show it yet, or any more: otherwise people would be told in turns that the
    wallet is running empty, and that it is not.
    """
    active_attempt = run.current_attempt if run.state in ACTIVE_STATES else None
    if active_attempt is not None:
        wallet, own_usd = funds.get(active_attempt.offer.provider), active_attempt.offer.usd_per_hour
        return (
            replace(wallet, burn_usd_per_hour=max(wallet.burn_usd_per_hour, own_usd))
            if wallet is not None
            else None
        )
    paying = [funds.get(name) for name in allowed_providers(run.spec.hardware)]
    known = [wallet for wallet in paying if wallet is not None]
    return max(known, key=Funds.left_s) if known and len(known) == len(paying) else None


def describe(decision: d.Decision) -> str:
    """Return the decision as one line of text."""
    match decision:
        case d.Recover(cause, detail):
            return f"{cause.value}: {detail}"
        case d.Finish(state, _, why):
            return f"{state.value}: {why}"
        case d.Terminate(pods):
            return ", ".join(p.pod_id for p in pods)
        case d.Notify(title=title, text=text):
            return f"{title}: {text}"
        case d.Hold(_, title, why):
            return f"{title}: {why}"
        case d.Drain(reason, text):
            return f"{reason.value}: {text}"
        case _:
            return ""


def reconcile_fully(
    context: Context,
    run_id: str,
    now_s: int | None = None,
    snapshot: Snapshot | None = None,
    *,
    clock: Callable[[], int] | None = None,
) -> int:
    """Reconcile one run until nothing is left to do, at most `STEPS_A_RUN_MAX` steps; return the number of
    steps.

    Each step uses the current second of `clock`, or else of the store: a create call takes minutes, and what
    follows must not be dated before it. With `now_s` alone all steps are as of that second.
    """
    if now_s is None:
        clock = clock or context.store.now_s
        now_s = clock()
    snapshot = snapshot if snapshot is not None else see(context, now_s)
    for step in range(1, STEPS_A_RUN_MAX + 1):
        at_s = _now_s(now_s, clock)
        if clock is not None:
            snapshot = fresh(context, snapshot, at_s)
        done = reconcile(context, run_id, at_s, snapshot, clock=clock)
        # may have taken minutes; observe its result first
        if done.is_rest or isinstance(done.decision, d.PutAgent):
            return step
        if isinstance(done.decision, d.Launch | d.Terminate | d.Recover | d.Finish):
            snapshot = replace(
                look(context, _now_s(now_s, clock)), hearing=snapshot.hearing, listened_s=snapshot.listened_s
            )
    return STEPS_A_RUN_MAX


def _now_s(given_s: int, clock: Callable[[], int] | None) -> int:
    return given_s if clock is None else clock()
