"""Follow a launched run to its end, printing its events line by line."""

import logging

import typer

from prime_train.app.follow import served_meanwhile
from prime_train.app.home import Home
from prime_train.exit_codes import Exit
from prime_train.pages.dashboard.serving import served_here
from prime_train.runs.run import RunState
from prime_train.terminal.history import await_end


def follow(home: Home, run_id: str) -> Exit:
    """Follow the run until it is over and its machines are terminated; return OK only if it succeeded. If no
    control plane serves the home, this process serves it meanwhile.
    """
    # Alerts are not logged, because their events are printed as history already.
    logging.getLogger("prime_train.alerts").addHandler(logging.NullHandler())
    with served_meanwhile(home, served_here) as is_here:
        elsewhere = home.served.last if not is_here else None
        at = f" at {elsewhere.url}" if elsewhere is not None else ""
        acts = "no control plane is running: this process acts as the control plane until the run ends"
        typer.echo(acts if is_here else f"the control plane{at} watches the run")
        try:
            run = await_end(home.store(), lambda: home.served.is_served, run_id)
        except KeyboardInterrupt:
            by = (
                ". It needs a control plane: prime-train serve --background"
                if is_here
                else f", watched by the control plane{at}"
            )
            typer.echo(f"{run_id} continues{by}. To end it: prime-train stop {run_id}", err=True)
            raise
    typer.echo(f"{run_id} {run.state.value}: {run.why}")
    return Exit.OK if run.state is RunState.SUCCEEDED else Exit.FINDINGS
