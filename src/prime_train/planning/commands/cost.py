"""`prime-train cost CONFIG`: estimate the duration and the cost of a run, itemised."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.planning.commands import quantities
from prime_train.planning.limits import STEP_S_MAX, STEPS_MAX, USD_PER_HOUR_MAX


def cost(
    config: Annotated[
        Path, typer.Argument(help="A run's config, such as configs/demo.yaml.", show_default=False)
    ],
    usd_per_hour: Annotated[
        float,
        typer.Option(
            min=0, max=USD_PER_HOUR_MAX, help="Price of a machine in dollars per hour; 0: those for rent now."
        ),
    ] = 0,
    step_s: Annotated[
        float,
        typer.Option(min=0, max=STEP_S_MAX, help="Seconds per step; 0: as in an earlier run, or estimated."),
    ] = 0,
    steps: Annotated[
        int, typer.Option(min=0, max=STEPS_MAX, help="Number of steps; 0: as in the config.")
    ] = 0,
    tokens: Annotated[
        str,
        typer.Option(
            help="Tokens per step, such as 500k, to estimate the time of a step.", show_default=False
        ),
    ] = "",
    model: Annotated[
        str, typer.Option(help="Model, if the config does not name it.", show_default=False)
    ] = "",
    spot: Annotated[
        bool | None,
        typer.Option(
            "--spot/--on-demand",
            help="With --usd-per-hour: whether the machine is a spot machine.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Estimate what a run costs, and why.

    The estimate includes start-up, smoke run, training and losses of machines, and says whether the budget is
    enough. The machines are those that a launch would try, in that order and with the same figures; without
    an account, those of a dated catalogue of prices.

    The step time is the given one, else the one measured in an earlier run of the same config on this
    machine, else an estimate from published speeds; the output says which. With --usd-per-hour, no request is
    sent.
    """
    from prime_train.app.home import Home
    from prime_train.planning.commands import cost_tables as cost_show
    from prime_train.planning.cost import CostRequest, estimate_cost
    from prime_train.planning.report import cost_json

    request = CostRequest(
        config,
        usd_per_hour=usd_per_hour or None,
        step_s=step_s or None,
        steps=steps or None,
        tokens=quantities.tokens(tokens) if tokens else None,
        model=model,
        spot=spot,
    )
    found = estimate_cost(Home.of(os.environ), request)
    if as_json:
        print(cost_json.text(found))
    else:
        cost_show.show(found)
    return Exit.OK
