"""The step of a run, which is the same for every watcher: load, gather evidence, judge, decide, save, then make the calls that the decision
requires.

A watcher that crashes between the save and the calls leaves a state from which the next one continues: a launch is resolved by the pod's
name, a termination is requested again until the provider reports the pod as ended, an alert waits in the outbox. Of two concurrent
watchers, compare-and-set lets one save; the other one does nothing.
"""

from prime_train.control_plane.reconcile.attempt_records import catch_up, catch_up_all
from prime_train.control_plane.reconcile.context import Context, Snapshot, Step, SweepResult
from prime_train.control_plane.reconcile.execute import carry_out
from prime_train.control_plane.reconcile.manifests import parse_manifest, read_manifests
from prime_train.control_plane.reconcile.observe import gather, hears_since, look, see
from prime_train.control_plane.reconcile.outbox import ALERT_S_MAX, deliver
from prime_train.control_plane.reconcile.steps import STEPS_A_RUN_MAX, describe, reconcile, reconcile_fully
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
    "reconcile_fully",
    "see",
    "sweep",
]
