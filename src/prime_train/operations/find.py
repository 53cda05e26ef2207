"""Find the machine to rent for a training, with its cost and the reasons against the others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.configs.loaded import LoadedConfig
from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.providers import providers_to_rent_from
from prime_train.core.advice import Advice, Option, Setting
from prime_train.core.errors import UsageError
from prime_train.core.market.observations import NOTHING_SEEN
from prime_train.core.market.quotes import Market, Work
from prime_train.core.offers import Offer, variant_of
from prime_train.core.registry.providers import allowed_providers, is_rented
from prime_train.core.spec import HardwareSpec
from prime_train.core.spec_choices import Spot
from prime_train.estimate.memory.phases import GIB, Logits, Method, Training, trained_params
from prime_train.estimate.models import lookup as models
from prime_train.estimate.models.dimensions import Model
from prime_train.estimate.placement import COUNTS, Job, MachineConstraints, Placement, Variant, choose
from prime_train.operations.cost import TOKENS_MAX, USD_PER_HOUR_MAX
from prime_train.operations.launching.market import market_for, seen_here
from prime_train.operations.memory import SEQ_LEN_MAX, check_range, loaded_config
from prime_train.reports.cost.forecast import forecast_of
from prime_train.reports.market import save_advice
from prime_train.rules.hardware.memory_plan import plan_of
from prime_train.rules.rule import Subject

TOKENS = 1e8
SEQ_LEN = 4096
CHECKPOINTS_ON_DISK = 2
DISK_MARGIN_GIB = 20
DISK_GIB_MAX = 100_000


@dataclass(frozen=True)
class FindRequest:
    """A training for which a machine is searched. Fields that are None or empty are no constraint.

    `model`: an id such as `Qwen/Qwen3-8B`. `params`: the size of the model, such as `7B` or `30B-A3B`, if the id does not contain it.
    `gpus`: GPUs in the machine. `usd_per_hour_max`: the highest price of the machine in US dollars per hour. `spot`: only machines that can
    be preempted, or only others. `lora`: train adapters. `rl`: reinforcement learning, for which half of the GPUs generate. `bf16`:
    weights, gradients and AdamW states in 16 bit. `tokens`: tokens to train on. `seq_len`: tokens per sequence. `disk_gib`: GiB of disk;
    None: enough for the model and 2 checkpoints. `kinds`: kinds of GPU, such as `H100`. `config`: a run's config, whose `hardware` is the
    constraint where none is given, and which says what is trained unless `model` or `params` does.
    """

    model: str = ""
    params: str = ""
    gpus: int | None = None
    usd_per_hour_max: float | None = None
    spot: bool | None = None
    lora: bool = False
    rl: bool = False
    bf16: bool = False
    tokens: float = TOKENS
    seq_len: int = SEQ_LEN
    disk_gib: int | None = None
    kinds: tuple[str, ...] = ()
    config: Path | None = None

    def __post_init__(self) -> None:
        check_range(Setting.USD_PER_HOUR_MAX, self.usd_per_hour_max, 0, USD_PER_HOUR_MAX)
        check_range(Setting.TOKENS, self.tokens, 1, TOKENS_MAX)
        check_range(Setting.SEQ_LEN, self.seq_len, 1, SEQ_LEN_MAX)
        check_range(Setting.DISK_GIB, self.disk_gib, 1, DISK_GIB_MAX)
        if self.gpus is not None and self.gpus not in COUNTS:
            message = f"{self.gpus} GPUs: a config cannot request that number in one machine"
            raise UsageError(message, fix=f"write one of {', '.join(map(str, COUNTS))}")


@dataclass(frozen=True)
class FoundMachines:
    """The result of a search. `placement`: the machines that fit, the best first, and the others with the reasons; `job`: the training, of
    a config with variants that of the first; `constraints`: the user's constraints; `variants`: those of the config, in words; `basis`:
    what losses and start times are based on; `saving`: how often the trainer should save on the best machine, "" if it hardly matters."""

    title: str
    job: Job
    constraints: MachineConstraints
    placement: Placement
    variants: tuple[str, ...] = ()
    basis: str = ""
    saving: str = ""


def find_machines(home: Home, request: FindRequest) -> FoundMachines:
    """Return the choice among the current offers of all providers. Nothing is rented.

    Raises UsageError if the config cannot be read or the model is not known, and ExternalError if no provider answers.
    """
    loaded = loaded_config(request.config, home.environment) if request.config is not None else None
    judged, spec = (loaded.judged, loaded.spec) if loaded is not None else ((), None)
    if loaded is not None and spec is None:
        message = f"{request.config} is a trainer's config, which contains no machine"
        raise UsageError(message, fix="give the config of a run that names this file")
    jobs = [_job(request, subject) for _, subject in judged] or [_job(request, None)]
    constraints = _constraints(request, jobs, spec.hardware if spec is not None else None)
    # All machines match this, so that each rejected one is listed with its reason.
    named = allowed_providers(spec.hardware) if spec is not None else ()
    providers = providers_to_rent_from(home.environment, named if is_rented(named) else ())
    hardware = HardwareSpec(providers=providers, disk_gib=constraints.disk_gib)
    variants = tuple(title for title, _ in judged if title)

    def variant_for(offer: Offer) -> Variant | None:
        number = variant_of(offer, spec.hardware) if spec is not None else None
        return Variant(number + 1, jobs[number]) if number is not None else None

    market, saving, image = _market(home, request, loaded), "", spec.hardware.image if spec is not None else None
    placement = choose(home.pods().offers(hardware), jobs[0], constraints, variant_for if variants else None, market=market, image=image)
    best = placement.best.costs if placement.best is not None else None
    if best is not None and spec is not None and loaded is not None:
        saving = save_advice(best.quote, spec, forecast_of([subject for _, subject in loaded.judged]))
    title = request.model or request.params or (str(request.config) if request.config is not None else "")
    return FoundMachines(title, jobs[0], constraints, placement, variants, market.basis, saving)


def _market(home: Home, request: FindRequest, loaded: LoadedConfig | None) -> Market:
    """Return what costs are derived from: for a config what a launch of it would be judged by, unless the request says what is trained."""
    seen, spec = seen_here(home), loaded.spec if loaded is not None else None
    if loaded is None or spec is None or request.model or request.params:
        return Market(Work(), seen or NOTHING_SEEN, has_store=seen is not None)
    return market_for(spec, forecast_of([subject for _, subject in loaded.judged]), seen)


def _job(request: FindRequest, subject: Subject | None) -> Job:
    """Return the job of the request, or that of the config unless the request names a model."""
    plan = plan_of(subject) if subject is not None and not (request.model or request.params) else None
    if plan is None:
        return Job(_model(request), _training(request), request.tokens, request.rl)
    steps = subject.spec.trainer.steps if subject is not None and subject.spec is not None else None
    return Job(plan.model, plan.training, float((steps or 0) * plan.batch_tokens) or request.tokens, plan.serve_gpus > 0)


def _constraints(request: FindRequest, jobs: Sequence[Job], hardware: HardwareSpec | None) -> MachineConstraints:
    """Return the constraints of the request, and those of the config where the request has none."""
    disk_gib = max(map(disk_gib_for, jobs))
    if hardware is None:
        spot = Spot.PREFER if request.spot is None else Spot.ONLY if request.spot else Spot.NEVER
        return MachineConstraints(request.gpus, request.usd_per_hour_max, spot, request.kinds, request.disk_gib or disk_gib)
    return MachineConstraints(
        request.gpus or (hardware.count if hardware.gpus and not hardware.variants else None),
        hardware.usd_per_hour_max if request.usd_per_hour_max is None else request.usd_per_hour_max,
        hardware.spot if request.spot is None else Spot.ONLY if request.spot else Spot.NEVER,
        request.kinds or hardware.gpus,
        request.disk_gib or hardware.disk_gib,
    )


def disk_gib_for(job: Job) -> int:
    """Return the disk size in GiB for the downloaded model in 16 bit and `CHECKPOINTS_ON_DISK` checkpoints of all that is trained."""
    saved = trained_params(job.model, job.training) * (job.training.weight_bytes + job.training.state_bytes)
    needed = (2 * job.model.params + CHECKPOINTS_ON_DISK * saved) / GIB + DISK_MARGIN_GIB
    return min(DISK_GIB_MAX, math.ceil(needed / 10) * 10)


def _model(request: FindRequest) -> Model:
    name, params = request.model, request.params
    if not name and not params:
        fix = Advice("write ", Option(Setting.MODEL, "Qwen/Qwen3-8B"), ", or ", Option(Setting.PARAMS, "8B"))
        raise UsageError("which model?" if request.config is None else f"{request.config} does not say which model is trained", fix=fix)
    # An explicit size takes precedence over the name.
    found = models.sized(params) if params else models.resolve_model(name)
    if found is None:
        wrong = f"{params} is not a model size" if params else f"the model {name} is unknown, and its name does not contain its size"
        size, mixture = Option(Setting.PARAMS, "7B"), Option(Setting.PARAMS, "30B-A3B")
        fix = Advice("write its size, such as ", size, ", or ", mixture, " for a mixture of experts with 3B active parameters")
        raise UsageError(wrong, fix=fix)
    return found


def _training(request: FindRequest) -> Training:
    """Return the training settings of prime-rl: its RL materialises only some logits at a time, its SFT all of them."""
    width = 2 if request.bf16 else 4
    return Training(
        method=Method.LORA if request.lora else Method.FULL,
        seq_len=request.seq_len,
        weight_bytes=width,
        gradient_bytes=width,
        state_bytes=2 * width,
        logits=Logits.FUSED if request.rl else Logits.FULL,
    )
