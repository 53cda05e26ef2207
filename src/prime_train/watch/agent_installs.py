"""Installs agents on machines beside a watcher that ends soon: sweeps continue meanwhile, and installations
are awaited at the end.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from prime_train.app.home import Home
from prime_train.errors import PermanentError
from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from prime_train.watch.context import Context
from prime_train.watch.port import Watched
from prime_train.watch.steps import describe, reconcile_fully

if TYPE_CHECKING:
    from prime_train.providers.install.background import BackgroundPusher, Failure

SAVES_MAX = 5
"""Times that saving a failure is retried when another watcher was faster."""


def context_with_installer(
    home: Home, webhook_url: str, *, watched: Watched | None = None
) -> "tuple[Context, BackgroundPusher]":
    """Return the context of `Home.context`, and the background installer that puts agents on the machines it
    rents.
    """
    providers = home.providers(webhook_url)
    context = home.context(webhook_url, watched=watched)
    return replace(context, pods=providers.pods, accounts=providers.accounts), providers.pushes


def report_failed(context: Context, pushes: "BackgroundPusher") -> None:
    """Make each run whose agent could not be installed leave its machine at once, even if this process does
    not check the run again.

    Raises exceptions that no adapter should have raised.
    """
    while (failure := pushes.failure()) is not None:
        if not isinstance(failure.error, PermanentError):
            raise failure.error
        _leave_machine(context, failure)


def _leave_machine(context: Context, failure: "Failure") -> None:
    recover = d.Recover(Cause.PREFLIGHT_FAILED, str(failure.error))
    for _ in range(SAVES_MAX):
        record = context.store.load(failure.run_id)
        if (
            record is None
            or record.run.state is not RunState.BOOTING
            or record.run.attempt != failure.attempt
        ):
            return  # its agent is there by now, or the machine belongs to the run no more
        if context.store.save(c.change(record.run, record.lease, recover, context.store.now_s())):
            context.watched(failure.run_id, "Recover", describe(recover))
            reconcile_fully(context, failure.run_id)
            return
