"""`prime-train memory CONFIG`: estimate the GPU memory of a run in each phase, and whether it fits."""

import os
from pathlib import Path
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.planning.commands.quantities import kinds
from prime_train.planning.limits import GPUS_MAX, MICRO_BATCH_MAX, SEQ_LEN_MAX


def memory(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A run's config, or a trainer's, such as rl.toml or lora.yml.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Model, if the config does not name it: Qwen/Qwen3-8B, or 8B.", show_default=False),
    ] = "",
    gpu: Annotated[
        str,
        typer.Option(
            help="Kind of GPU with its memory, such as H100_80GB; may be repeated.", show_default=False
        ),
    ] = "",
    gpus: Annotated[
        int, typer.Option(min=0, max=GPUS_MAX, help="Number of GPUs for training; 0: as in the config, or 1.")
    ] = 0,
    seq_len: Annotated[
        int, typer.Option(min=0, max=SEQ_LEN_MAX, help="Tokens per sequence; 0: as in the config, or 4096.")
    ] = 0,
    micro_batch: Annotated[
        int,
        typer.Option(
            min=0, max=MICRO_BATCH_MAX, help="Sequences per GPU at a time; 0: as in the config, or 1."
        ),
    ] = 0,
    bf16: Annotated[bool, typer.Option("--bf16", help="Weights, gradients and AdamW in 16 bits.")] = False,
    hub: Annotated[
        bool,
        typer.Option(
            "--hub", help="Read the model's architecture from Hugging Face (HF_ENDPOINT, HF_TOKEN)."
        ),
    ] = False,
    lora: Annotated[bool, typer.Option("--lora", help="Train LoRA adapters instead of all weights.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Estimate the GPU memory that a run needs.

    Exits with code 1 if it does not fit one of its kinds of GPU. Uses the network only with --hub.
    """
    from prime_train.planning.commands import memory_tables as memory_show
    from prime_train.planning.memory import MemoryRequest, estimate_memory
    from prime_train.planning.report import memory_json

    request = MemoryRequest(
        config,
        model,
        kinds(gpu),
        gpus or None,
        seq_len or None,
        micro_batch or None,
        lora=lora,
        bf16=bf16,
        hub=hub,
    )
    found = estimate_memory(request, os.environ)
    if as_json:
        print(memory_json.text(found))
    else:
        memory_show.show(found)
    return Exit.OK if found.fits else Exit.FINDINGS
