"""Agents brought to machines beside a watcher that ends soon: its looks go on meanwhile, and what is under way is waited for at the end."""

from dataclasses import replace
from typing import TYPE_CHECKING

from prime_train.ports import PermanentError

if TYPE_CHECKING:
    from prime_train.adapters.pods_prime import BackgroundPusher, Failure
    from prime_train.control_plane.reconcile import Context
    from prime_train.control_plane.wiring.home import Home
    from prime_train.ports import Watched

SAVES_MAX = 5
"""So often a failure is written down again that another watcher was faster with."""


def pushing(home: "Home", webhook_url: str, *, watched: "Watched | None" = None) -> "tuple[Context, BackgroundPusher]":
    """A context as `Home.context` makes it, and the agents that are being brought to its machines."""
    providers = home.providers(webhook_url)
    context = home.context(webhook_url, watched=watched)
    return replace(context, pods=providers.pods, account=providers.account), providers.pushes


def tell_failed(context: "Context", pushes: "BackgroundPusher") -> None:
    """A run whose agent cannot be put on its machine leaves that machine at once, also where nobody of this process looks at it again.

    Raises what no adapter should have raised.
    """
    while (failure := pushes.failure()) is not None:
        if not isinstance(failure.error, PermanentError):
            raise failure.error
        _leave_machine(context, failure)


def _leave_machine(context: "Context", failure: "Failure") -> None:
    from prime_train.control_plane.reconcile import describe, settle
    from prime_train.core import change as c
    from prime_train.core import decide as d
    from prime_train.core.causes import Cause
    from prime_train.core.run import RunState

    recover = d.Recover(Cause.PREFLIGHT_FAILED, str(failure.error))
    for _ in range(SAVES_MAX):
        held = context.store.load(failure.run_id)
        if held is None or held.run.state is not RunState.BOOTING or held.run.attempt != failure.attempt:
            return  # its agent is there by now, or the machine is not its machine any more
        if context.store.save(c.change(held.run, held.lease, recover, context.store.now_s())):
            context.watched(failure.run_id, "Recover", describe(recover))
            settle(context, failure.run_id)
            return
