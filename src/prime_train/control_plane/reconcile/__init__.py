"""Load, gather evidence, judge, decide, save, then touch the outside: one step a call, the same for every watcher.

A watcher that crashes between save and effect leaves a state from which the next one goes on: a launch is settled by the pod's name, a
terminate is asked again until the provider says "gone", an alert waits in the outbox. Two watchers at once are told apart by the
compare-and-set; the one that loses returns.
"""

from prime_train.control_plane.reconcile.context import Context, Snapshot, Step, SweepResult
from prime_train.control_plane.reconcile.execute import carry_out
from prime_train.control_plane.reconcile.manifests import parse_manifest, read_manifests
from prime_train.control_plane.reconcile.observe import gather, hears_since, look, see
from prime_train.control_plane.reconcile.outbox import ALERT_S_MAX, deliver
from prime_train.control_plane.reconcile.records import catch_up, catch_up_all
from prime_train.control_plane.reconcile.steps import STEPS_A_RUN_MAX, describe, reconcile, settle
from prime_train.control_plane.reconcile.sweeps import DUE_MAX, sweep

__all__ = [
    "ALERT_S_MAX",
    "DUE_MAX",
    "STEPS_A_RUN_MAX",
    "Context",
    "Snapshot",
    "Step",
    "SweepResult",
    "carry_out",
    "catch_up",
    "catch_up_all",
    "deliver",
    "describe",
    "gather",
    "hears_since",
    "look",
    "parse_manifest",
    "read_manifests",
    "reconcile",
    "see",
    "settle",
    "sweep",
]
