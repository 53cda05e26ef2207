"""Decides the next action for a run.

Theory of operation ------------------- `decide` is called again and again, by watchers that may overlap,
crash at any point and read stale facts. Four rules make this safe:

1. One decision per call. A decision is saved (compare-and-set) before anything outside is touched; so a
   second watcher either loses the write or reads the new state and decides the next action.
2. A pod of any attempt other than the current one is an orphan and is terminated first, in every state of the
   run. That one rule covers lost create responses, machines that outlive their fence, doubled launches and
   runs that have ended.
3. The fence closes the lease, in the same write as the change of state. From then on the old attempt can
   neither heartbeat nor commit. What the next attempt restores is chosen once, after that.
4. On Unknown nothing is deleted, and no machine terminated, but for orphans at providers that can be read.

Money is checked in every state that costs money, before anything else about the attempt.
"""

from prime_train.market.move_decision import best_move, may_move
from prime_train.runs.decide.active import EVIDENCE_WAIT_S
from prime_train.runs.decide.draining import PREEMPTION_DRAIN_S
from prime_train.runs.decide.money import WARN_SHARE, budget_moment_s, in_wallet
from prime_train.runs.decide.next_check import (
    BACKOFF_FIRST_S,
    BACKOFF_S_MAX,
    CHECK_S,
    OUTAGE_BACKOFF_S_MAX,
    QUICK_RETRY_S,
    QUICK_TRIES_MAX,
    back_off_until_s,
    backoff_s,
    check_s,
    healthy_until_s,
    refusals_in_a_row,
)
from prime_train.runs.decide.next_decision import decide
from prime_train.runs.decide.orphans import ORPHAN_RETRY_S, current_attempt, name_of, orphan_pods
from prime_train.runs.decide.queued import (
    BEHIND_SHARE_MAX,
    PREEMPTIONS_AN_HOUR_MAX,
    affordable,
    avoided_offers,
    closed_providers,
    in_common,
    wants_on_demand,
)
from prime_train.runs.decide.uploading import upload_limit_usd
from prime_train.runs.decision import (
    Adopt,
    AllClear,
    ChooseResume,
    CleanUp,
    Decision,
    Drain,
    Finish,
    Hold,
    Launch,
    Notify,
    PutAgent,
    Recover,
    RequestEvidence,
    SeeAfter,
    SeeDeletions,
    SeeHeartbeat,
    SeeStep,
    SeeUpload,
    Settle,
    Terminate,
    Wait,
)

# Decisions are exported here too, so that callers write `d.Launch` next to `d.decide`.
__all__ = [
    "BACKOFF_FIRST_S",
    "BACKOFF_S_MAX",
    "BEHIND_SHARE_MAX",
    "CHECK_S",
    "EVIDENCE_WAIT_S",
    "ORPHAN_RETRY_S",
    "OUTAGE_BACKOFF_S_MAX",
    "PREEMPTIONS_AN_HOUR_MAX",
    "PREEMPTION_DRAIN_S",
    "QUICK_RETRY_S",
    "QUICK_TRIES_MAX",
    "WARN_SHARE",
    "Adopt",
    "AllClear",
    "ChooseResume",
    "CleanUp",
    "Decision",
    "Drain",
    "Finish",
    "Hold",
    "Launch",
    "Notify",
    "PutAgent",
    "Recover",
    "RequestEvidence",
    "SeeAfter",
    "SeeDeletions",
    "SeeHeartbeat",
    "SeeStep",
    "SeeUpload",
    "Settle",
    "Terminate",
    "Wait",
    "affordable",
    "avoided_offers",
    "back_off_until_s",
    "backoff_s",
    "best_move",
    "budget_moment_s",
    "check_s",
    "closed_providers",
    "current_attempt",
    "decide",
    "healthy_until_s",
    "in_common",
    "in_wallet",
    "may_move",
    "name_of",
    "orphan_pods",
    "refusals_in_a_row",
    "upload_limit_usd",
    "wants_on_demand",
]
