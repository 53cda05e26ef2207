"""`prime-train find`: find the machine to rent for a model, its cost, and the reasons against the others."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.estimate.memory.training_setup import SEQ_LEN
from prime_train.exit_codes import Exit
from prime_train.planning.commands import quantities
from prime_train.planning.limits import SEQ_LEN_MAX, TOKENS
from prime_train.spec.limits import DISK_GIB_MAX

WORDS_OF_TOKENS = f"{TOKENS / 1e6:g}M"
ROWS = 10


def find(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A run's config, for its model, its hardware and its variants.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Model, such as Qwen/Qwen3-8B; by default that of the config.", show_default=False),
    ] = "",
    params: Annotated[
        str,
        typer.Option(
            help="Size of the model, if its name does not contain it: 7B, 30B-A3B.", show_default=False
        ),
    ] = "",
    gpus: Annotated[int, typer.Option(min=0, help="Number of GPUs in the machine; 0: any.")] = 0,
    budget: Annotated[
        str,
        typer.Option(
            help="Highest price of the machine in dollars per hour, such as 20.", show_default=False
        ),
    ] = "",
    spot: Annotated[
        bool | None,
        typer.Option(
            "--spot/--on-demand",
            help="Only spot or only on-demand machines; by default both.",
            show_default=False,
        ),
    ] = None,
    lora: Annotated[bool, typer.Option("--lora", help="Train LoRA adapters instead of all weights.")] = False,
    rl: Annotated[
        bool,
        typer.Option(
            "--rl",
            help="Train by RL: half of the GPUs generate rollouts, and training takes about 6 times as long.",
        ),
    ] = False,
    bf16: Annotated[
        bool,
        typer.Option(
            "--bf16", help="Weights, gradients and AdamW in 16 bits; by default in 32 bits, as prime-rl does."
        ),
    ] = False,
    tokens: Annotated[
        str,
        typer.Option(
            help="Number of tokens to train on, such as 500k, 100M, 1.5B; by default as finished runs of "
            f"the model, or {WORDS_OF_TOKENS}.",
            show_default=False,
        ),
    ] = "",
    seq_len: Annotated[
        int,
        typer.Option(
            min=1, max=SEQ_LEN_MAX, help="Tokens per sequence; each GPU trains one sequence at a time."
        ),
    ] = SEQ_LEN,
    disk: Annotated[
        int,
        typer.Option(min=0, max=DISK_GIB_MAX, help="Disk in GiB; 0: enough for the model and 2 checkpoints."),
    ] = 0,
    kind: Annotated[str, typer.Option(help="Kinds of GPU, such as H100,A100_80GB.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = ROWS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Find the cheapest machine for a model.

    Shows which machines fit, what the training would need and cost on each, and why the others were left out.
    Nothing is rented. Without an account, the list prices of a dated catalogue are used. Exits with code 1 if
    nothing fits.

    With a config, the machines are those that a launch would try, in that order and with the same figures;
    options replace what it says, as --set does at a launch, and the variant that each machine would get is
    shown. If --model or --params is given, the other options describe the training, too.
    """
    from prime_train.app.home import Home
    from prime_train.planning.commands import find_tables as find_show
    from prime_train.planning.find import FindRequest, find_machines
    from prime_train.planning.report import find_json

    request = FindRequest(
        model=model,
        params=params,
        gpus=gpus or None,
        usd_per_hour_max=quantities.price(budget) if budget else None,
        spot=spot,
        lora=lora,
        rl=rl,
        bf16=bf16,
        tokens=quantities.tokens(tokens) if tokens else None,
        seq_len=seq_len,
        disk_gib=disk or None,
        kinds=quantities.kinds(kind),
        config=config,
    )
    found = find_machines(Home.of(os.environ), request)
    if as_json:
        placement, job, constraints = found.placement, found.job, found.constraints
        print(
            find_json.text(
                placement,
                job,
                constraints,
                title=found.title,
                variants=found.variants,
                basis=found.basis,
                prices=found.prices,
                ways=found.ways,
                length=found.length,
            )
        )
    else:
        find_show.show(found, limit)
    return Exit.OK if found.placement.best is not None else Exit.FINDINGS
