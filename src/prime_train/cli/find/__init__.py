"""`prime-train find`: find the machine to rent for a model, its cost, and the reasons against the others."""

import math
import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.spec import HardwareSpec, Spot
    from prime_train.estimate.memory.phases import Training
    from prime_train.estimate.models.table import Model
    from prime_train.estimate.placement import Job, Wishes

TOKENS = "100M"
SEQ_LEN = 4096
SEQ_LEN_MAX = 2**21
ROWS = 10
CHECKPOINTS_ON_DISK = 2
DISK_SPARE_GIB = 20
DISK_GIB_MAX = 100_000


def find(
    model: Annotated[str, typer.Option(help="Model, such as Qwen/Qwen3-8B.", show_default=False)] = "",
    params: Annotated[str, typer.Option(help="Its size where the name does not tell: 7B, 30B-A3B.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=0, help="GPUs in the machine; 0: any number.")] = 0,
    budget: Annotated[str, typer.Option(help="Most dollars an hour for the whole machine, such as 20.", show_default=False)] = "",
    spot: Annotated[bool | None, typer.Option("--spot/--on-demand", help="Only these; without either, both.", show_default=False)] = None,
    lora: Annotated[bool, typer.Option("--lora", help="Train adapters instead of all weights.")] = False,
    rl: Annotated[bool, typer.Option("--rl", help="By RL: half of the GPUs make roll-outs, and it takes about 6 times as long.")] = False,
    bf16: Annotated[bool, typer.Option("--bf16", help="Weights, gradients and AdamW in 16 bit; otherwise in 32, as prime-rl.")] = False,
    tokens: Annotated[str, typer.Option(help="Tokens to train on, such as 500k, 100M, 1.5B.")] = TOKENS,
    seq_len: Annotated[int, typer.Option(min=1, max=SEQ_LEN_MAX, help="Tokens of a sequence, one at a time on each GPU.")] = SEQ_LEN,
    disk: Annotated[int, typer.Option(min=0, max=DISK_GIB_MAX, help="GiB of disk; 0: for the model and 2 checkpoints.")] = 0,
    kind: Annotated[str, typer.Option(help="Kinds of GPU, such as H100,A100_80GB.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(min=1, help="Rows to show.")] = ROWS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Find the cheapest machine for a model.

    Shows what fits, what it would take and cost, and why the others were left out. Nothing is rented. Leaves with 1 where nothing fits.
    """
    from prime_train.cli import amounts
    from prime_train.cli.find import show as find_show
    from prime_train.control_plane.wiring.home import Home
    from prime_train.estimate.placement import Job, Wishes, choose
    from prime_train.reports.find import as_json as find_json

    job = Job(_model(model, params), _training(seq_len, lora=lora, rl=rl, bf16=bf16), amounts.tokens(tokens), rl)
    wishes = Wishes(
        gpus=_count(gpus),
        usd_per_hour_max=amounts.price(budget) if budget else None,
        spot=_spot(spot),
        kinds=amounts.kinds(kind),
        disk_gib=disk or disk_gib(job),
    )
    choice = choose(Home.of(os.environ).pods().offers(_hardware(wishes)), job, wishes)
    if as_json:
        print(find_json.text(choice, job, wishes, title=model or params))
    else:
        find_show.show(choice, job, wishes, title=model or params, limit=limit)
    return Exit.OK if choice.best is not None else Exit.FINDINGS


def disk_gib(job: "Job") -> int:
    """Return the disk size in GiB for the downloaded model in 16 bit and `CHECKPOINTS_ON_DISK` checkpoints of all that is trained."""
    from prime_train.estimate.memory.phases import GIB, trained_params

    saved = trained_params(job.model, job.training) * (job.training.weight_bytes + job.training.state_bytes)
    needed = (2 * job.model.params + CHECKPOINTS_ON_DISK * saved) / GIB + DISK_SPARE_GIB
    return min(DISK_GIB_MAX, math.ceil(needed / 10) * 10)


def _model(name: str, params: str) -> "Model":
    from prime_train.estimate.models import lookup as models

    if params:
        # An explicit size takes precedence over the name.
        found, wrong = models.sized(params), f"--params {params}: no size of a model"
    elif name:
        found, wrong = models.understand(name), f"the model {name} is not known, and its name does not tell its size"
    else:
        raise UsageError("which model?", fix="write --model Qwen/Qwen3-8B, or --params 8B")
    if found is None:
        raise UsageError(
            wrong, fix="write its size, such as --params 7B, or --params 30B-A3B for a mixture of experts that uses 3B at a time"
        )
    return found


def _training(seq_len: int, *, lora: bool, rl: bool, bf16: bool) -> "Training":
    """Return the training settings of prime-rl: its RL materialises only some logits at a time, its SFT all of them."""
    from prime_train.estimate.memory.phases import Logits, Method, Training

    width = 2 if bf16 else 4
    return Training(
        method=Method.LORA if lora else Method.FULL,
        seq_len=seq_len,
        weight_bytes=width,
        gradient_bytes=width,
        state_bytes=2 * width,
        logits=Logits.FUSED if rl else Logits.WHOLE,
    )


def _count(gpus: int) -> int | None:
    from prime_train.estimate.placement import COUNTS

    if gpus and gpus not in COUNTS:
        raise UsageError(f"--gpus {gpus}: no config can ask for so many in one machine", fix=f"write one of {', '.join(map(str, COUNTS))}")
    return gpus or None


def _spot(wanted: bool | None) -> "Spot":
    from prime_train.core.spec import Spot

    if wanted is None:
        return Spot.PREFER
    return Spot.ONLY if wanted else Spot.NEVER


def _hardware(wishes: "Wishes") -> "HardwareSpec":
    """Return a hardware spec that all machines match, so that each rejected one is listed with its reason."""
    from prime_train.control_plane.wiring.providers import provider_to_rent_from
    from prime_train.core.spec import HardwareSpec

    return HardwareSpec(provider=provider_to_rent_from(os.environ), disk_gib=wishes.disk_gib)
