"""The entry point for decisions."""

from collections.abc import Sequence

from prime_train.runs.decide.active import decide_active
from prime_train.runs.decide.money import required_by_money_or_user
from prime_train.runs.decide.next_check import check_s
from prime_train.runs.decide.orphans import housekeeping, unsettled
from prime_train.runs.decide.queued import decide_queued
from prime_train.runs.decision import CleanUp, Decision, Move, Wait
from prime_train.runs.funds import Funds
from prime_train.runs.run import Run, RunState
from prime_train.runs.verdict import PodsView, Verdict


def decide(
    run: Run,
    verdict: Verdict | None,
    pods: PodsView,
    now_s: int,
    *,
    lacking: Sequence[str] = (),
    funds: Funds | None = None,
    move: Move | None = None,
    not_allowed: str = "",
    policy_unread: str = "",
) -> Decision:
    """Return the next action for `run`. `verdict` is None if no attempt holds the lease (queued and terminal
    states); `lacking` names the secrets of the run that the control plane cannot provide; `funds` is the
    wallet that pays for the run, None if there is none or it cannot be read; `move`: the best machine to move
    to, None if nobody looked for one; `not_allowed`: what the run asks beyond the operator's policy, empty if
    nothing; `policy_unread`: why the policy cannot be read, empty if it can.
    """
    first = housekeeping(run, pods, now_s)
    if first is not None:
        return first
    if run.is_over:
        return _afterwards(run, now_s)
    if run.state is RunState.QUEUED:
        return decide_queued(
            run, pods, now_s, lacking, funds, not_allowed=not_allowed, policy_unread=policy_unread
        )
    attempt = run.current_attempt
    if attempt is None or verdict is None:
        raise ValueError(
            f"run {run.run_id} is {run.state.value}, so it has an attempt, and its verdict is needed"
        )
    return required_by_money_or_user(run, verdict, funds, now_s) or decide_active(
        run, attempt, verdict, pods, now_s, move
    )


def _afterwards(run: Run, now_s: int) -> Decision:
    """Return what is left to do for a run that is over: first end its machines, because one that still runs
    might still upload.
    """
    if unsettled(run):
        return Wait(now_s + check_s(run), "waiting for the provider to confirm that its pods are gone")
    if run.cleanup_s is None:
        return Wait(None, "the run has ended")
    return (
        CleanUp()
        if now_s >= run.cleanup_s
        else Wait(run.cleanup_s, "unused chunks of the last uploads are removed from the bucket later")
    )
