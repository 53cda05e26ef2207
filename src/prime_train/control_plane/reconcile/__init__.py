"""Load, gather evidence, judge, decide, save, then act outside: one step per call, the same for every watcher.

A watcher that crashes between save and action leaves a state from which the next one continues: a launch is resolved by the pod's name, a
termination is requested again until the provider reports "gone", an alert waits in the outbox. Compare-and-set separates two concurrent
watchers: the one whose write fails returns.
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
