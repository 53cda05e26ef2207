"""Decisions for a run that waits for a machine."""

from collections.abc import Mapping, Sequence

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.budget import training_s, used_up
from prime_train.runs.decide.money import ended, in_wallet
from prime_train.runs.decide.next_check import BACKOFF_S_MAX, OUTAGE_BACKOFF_S_MAX, back_off_until_s
from prime_train.runs.decide.outcomes import unknown
from prime_train.runs.decision import ChooseResume, Decision, Finish, Hold, Launch, Wait
from prime_train.runs.funds import LAUNCH_S, RESERVE_S, Funds
from prime_train.runs.offer import Offer
from prime_train.runs.run import DesiredState, Run, RunState
from prime_train.runs.verdict import PodsUnknown, PodsView, Unknown
from prime_train.spec import access_run_secrets as run_secrets
from prime_train.spec.after_steps import is_done_despite
from prime_train.spec.causes import POLICY, Cause

PREEMPTIONS_AN_HOUR_MAX = 3
"""Number of preemptions within an hour from which on on-demand machines are rented, if the run allows
them.
"""
BEHIND_SHARE_MAX = 0.1
"""How far progress may lag behind the used hours, as a share of all steps."""


def decide_queued(
    run: Run,
    pods: PodsView,
    now_s: int,
    lacking: Sequence[str],
    funds: Funds | None,
    *,
    not_allowed: str = "",
    policy_unread: str = "",
) -> Decision:
    if run.desired is not DesiredState.RUN:
        state = RunState.CANCELLED if run.desired is DesiredState.CANCEL else RunState.STOPPED
        return Finish(
            state,
            None,
            "stopped by the user "
            + ("between two machines" if run.attempts else "before a machine was rented"),
        )
    if not run.resume_chosen:
        return ChooseResume()
    if run.unresumable:
        return Finish(RunState.STOPPED, run.cause or Cause.BAD_CHECKPOINT, run.unresumable)
    if run.trained_step is not None and run.after_done >= len(run.spec.after):
        return Finish(RunState.SUCCEEDED, Cause.FINISHED, f"finished at step {run.best_step}")
    if (done := _done_before(run)) is not None:
        return done
    limits = used_up(run, now_s)
    if limits:
        return ended(run, limits[0])
    if len(run.strikes) >= run.spec.budget.restarts_without_progress:
        return Finish(
            RunState.STOPPED,
            run.strikes[-1],
            f"{len(run.strikes)} attempts in a row made no new checkpoint: {in_common(run.strikes)}",
        )
    if not_allowed:
        return Finish(RunState.FAILED, Cause.NOT_ALLOWED, f"no machine was rented: {not_allowed}")
    if isinstance(pods, PodsUnknown):
        return unknown(run, Unknown(pods.why), now_s)
    if now_s < run.not_before_s <= now_s + OUTAGE_BACKOFF_S_MAX:
        return Wait(
            back_off_until_s(run, run.not_before_s, now_s), "waiting before the next machine (back-off)"
        )
    if policy_unread:
        why = (
            f"{policy_unread}; a policy that cannot be read allows nothing, so no machine is rented "
            "until it can"
        )
        return Hold(AlertKind.POLICY, "the policy cannot be read", why)
    if lacking:
        why = (
            f"the control plane does not provide {', '.join(lacking)}: not set there, or not listed in "
            f"{run_secrets.VARIABLE}; "
            "restart the control plane with them; no machine is rented before"
        )
        return Hold(AlertKind.SECRETS, "secrets are missing", why)
    if funds is not None and not _covers(funds, run, _likely_usd_per_hour(run)):
        return Hold(
            AlertKind.FUNDS,
            "the wallet is nearly empty",
            f"{in_wallet(funds)}; no machine is rented until there is credit for an hour",
        )
    return Launch(on_demand=wants_on_demand(run, now_s))


def _done_before(run: Run) -> Finish | None:
    """Return the end of a run whose last step was durable before its machine was lost or its attempt ended
    otherwise: another machine would be rented to do nothing. Outputs and steps after training may still have
    to be done, on another machine.
    """
    attempt, point, spec = run.current_attempt, run.resume, run.spec
    if attempt is None or point is None or run.starts_elsewhere or spec.after or spec.outputs:
        return None
    if (point.step, point.attempt) in {one.place for one in run.distrusted}:
        return None
    if not is_done_despite(attempt.cause, spec.trainer.steps, reached=run.best_step, durable_step=point.step):
        return None
    how = POLICY[attempt.cause].title if attempt.cause is not None else "ended"
    why = f"finished at step {point.step}, which was durable before attempt {attempt.number} ended: {how}"
    return Finish(RunState.SUCCEEDED, Cause.FINISHED, why)


def affordable(run: Run, offers: Sequence[Offer], wallets: Mapping[str, Funds]) -> Sequence[Offer]:
    """Return the offers that their providers' wallets cover, as far as these are known. Another machine would
    soon be ordered to leave again, after its boot was paid for.
    """
    return [
        o for o in offers if o.provider not in wallets or _covers(wallets[o.provider], run, o.usd_per_hour)
    ]


def _covers(wallet: Funds, run: Run, usd_per_hour: float) -> bool:
    """Return whether the wallet covers another machine of this price for the run."""
    return wallet.left_s(usd_per_hour) >= max(LAUNCH_S, 2 * (RESERVE_S + run.spec.health.drain_s))


def closed_providers(run: Run, now_s: int) -> frozenset[str]:
    """Return the providers that refused a machine within the last minutes for a reason that all their offers
    share: no credit, or as many machines as the account may have. Others are asked before them.
    """
    recent = (
        a
        for a in run.attempts
        if a.cause in (Cause.NO_FUNDS, Cause.LIMIT_REACHED) and (a.fenced_s or 0) > now_s - BACKOFF_S_MAX
    )
    return frozenset(a.offer.provider for a in recent)


def _likely_usd_per_hour(run: Run) -> float:
    """Return the likely price of the next machine in dollars an hour: the last machine's, or else the highest
    allowed.
    """
    return (
        run.current_attempt.offer.usd_per_hour
        if run.current_attempt is not None
        else run.spec.hardware.usd_per_hour_max or 0.0
    )


def in_common(causes: tuple[Cause, ...]) -> str:
    """Return a text stating the causes that attempts without progress had in common."""
    kinds = list(dict.fromkeys(causes))
    if len(kinds) == 1:
        return f"all ended by '{POLICY[kinds[0]].title}'. {POLICY[kinds[0]].advice}".strip()
    return "they ended by " + ", ".join(f"'{POLICY[kind].title}' ({causes.count(kind)})" for kind in kinds)


def wants_on_demand(run: Run, now_s: int) -> bool:
    """Return whether to rent on-demand only: after several preemptions in an hour, or when durable steps lag
    well behind the share of hours used, spot is the more expensive choice.
    """
    recent = [at_s for at_s in run.preempted_s if at_s > now_s - 3600]
    steps, hours = run.spec.trainer.steps, run.spec.budget.hours
    if len(recent) >= PREEMPTIONS_AN_HOUR_MAX or steps is None or hours is None:
        return len(recent) >= PREEMPTIONS_AN_HOUR_MAX
    return run.durable_step / steps + BEHIND_SHARE_MAX < training_s(run, now_s) / 3600 / hours


def avoided_offers(run: Run, now_s: int) -> frozenset[str]:
    """Return the offers whose machines were preempted within the last hour, because another preemption there
    is likely.
    """
    recent = (a for a in run.attempts if a.cause is Cause.PREEMPTED and (a.fenced_s or 0) > now_s - 3600)
    return frozenset(a.offer.offer_id for a in recent)
