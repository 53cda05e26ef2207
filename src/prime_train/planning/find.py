"""Find the machine to rent for a training, with its cost and the reasons against the others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.checks.memory_plan import plan_of
from prime_train.configs.loader import LoadedConfig, loaded_config, of_config
from prime_train.errors import UsageError
from prime_train.estimate import gpus
from prime_train.estimate.job import JobDescription, ModelTraining
from prime_train.estimate.memory.phases import Method, Training
from prime_train.estimate.memory.training_setup import SEQ_LEN, usual_training
from prime_train.estimate.models import lookup as models
from prime_train.estimate.models.dimensions import Model
from prime_train.estimate.run_costs import run_costs
from prime_train.market.observations import NOTHING_SEEN
from prime_train.market.quotes import Market, Work
from prime_train.market.run_lengths import Guess, guessed_tokens
from prime_train.planning.cost_forecast import forecast_of, trained_words
from prime_train.planning.limits import SEQ_LEN_MAX, TOKENS, TOKENS_MAX, USD_PER_HOUR_MAX
from prime_train.planning.market_for_run import market_for, seen_here
from prime_train.planning.market_rows import save_advice
from prime_train.planning.memory import check_range
from prime_train.planning.offered import offered_here
from prime_train.planning.placement import (
    COUNTS,
    MachineConstraints,
    Placement,
    choose,
    choose_for_config,
    machine,
    none_of,
)
from prime_train.providers.kinds import allowed_providers, is_rented
from prime_train.runs.offer import Offer, variant_of
from prime_train.spec.choices import Spot
from prime_train.spec.limits import DISK_GIB_MAX
from prime_train.spec.overrides import setting_of
from prime_train.spec.reader import read_config
from prime_train.spec.rule import Subject
from prime_train.spec.spec import HardwareSpec, RunSpec
from prime_train.text.invocations import flag

GPUS_TRIED_MAX = 2
"""How many larger numbers of GPUs are tried where nothing fits."""


@dataclass(frozen=True)
class FindRequest:
    """A training for which a machine is searched. Fields that are None or empty are no constraint.

    `model`: an id such as `Qwen/Qwen3-8B`. `params`: the size of the model, such as `7B` or `30B-A3B`, if the
    id does not contain it. `gpus`: GPUs in the machine. `usd_per_hour_max`: the highest price of the machine
    in US dollars per hour. `spot`: only machines that can be preempted, or only others. `lora`: train
    adapters. `rl`: reinforcement learning, for which half of the GPUs generate. `bf16`: weights, gradients
    and AdamW states in 16 bit. `tokens`: tokens to train on; None: as many as finished runs of the model
    took, or `TOKENS`. `seq_len`: tokens per sequence. `disk_gib`: GiB of disk; None: enough for the model and
    2 checkpoints. `kinds`: kinds of GPU, such as `H100`. `config`: a run's config, whose `hardware` is the
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
    tokens: float | None = None
    seq_len: int = SEQ_LEN
    disk_gib: int | None = None
    kinds: tuple[str, ...] = ()
    config: Path | None = None

    def __post_init__(self) -> None:
        check_range(SettingAdvice.USD_PER_HOUR_MAX, self.usd_per_hour_max, 0, USD_PER_HOUR_MAX)
        check_range(SettingAdvice.TOKENS, self.tokens, 1, TOKENS_MAX)
        check_range(SettingAdvice.SEQ_LEN, self.seq_len, 1, SEQ_LEN_MAX)
        check_range(SettingAdvice.DISK_GIB, self.disk_gib, 1, DISK_GIB_MAX)
        if self.gpus is not None and self.gpus not in COUNTS:
            message = f"{self.gpus} GPUs: a config cannot request that number in one machine"
            raise UsageError(message, fix=f"write one of {', '.join(map(str, COUNTS))}")


@dataclass(frozen=True)
class FoundMachines:
    """The result of a search. `placement`: the machines that fit, the best first, and the others with the
    reasons; `job`: the training, of a config with variants that of the first; `constraints`: the user's
    constraints; `variants`: those of the config, in words; `basis`: what losses and start times are based on;
    `saving`: how often the trainer should save on the best machine, "" if it hardly matters; `prices`: how
    old the prices are, in words, if they are the catalogue's; `ways`: if nothing fits, what would, in words.
    """

    title: str
    job: ModelTraining
    constraints: MachineConstraints
    placement: Placement
    variants: tuple[str, ...] = ()
    basis: str = ""
    saving: str = ""
    prices: str = ""
    ways: tuple[str, ...] = ()
    length: str = ""
    """Where the number of steps, or of tokens, is from, in words; empty: the config or the request says
    it.
    """


def find_machines(home: Home, request: FindRequest) -> FoundMachines:
    """Return the choice among the current offers of all providers or, without an account, among the
    catalogue's. Nothing is rented. For a config, it is the choice of a launch, with the same figures.

    Raises UsageError if the config cannot be read or the model is not known, and ExternalError if no provider
    answers.
    """
    if request.config is None:
        return _for_model(home, request, request.model or request.params, (), HardwareSpec(disk_gib=1))
    loaded = _loaded(home, request, request.config)
    if loaded.spec is None:
        message = f"{request.config} is a trainer's config, which contains no machine"
        raise UsageError(message, fix="give the config of a run that names this file")
    if request.model or request.params:
        return _for_model(home, request, request.model or request.params, loaded.judged, loaded.spec.hardware)
    return _for_config(home, request, request.config, loaded, loaded.spec)


def _for_config(
    home: Home, request: FindRequest, config: Path, loaded: LoadedConfig, spec: RunSpec
) -> FoundMachines:
    forecast = forecast_of([subject for _, subject in loaded.judged])
    market = market_for(spec, forecast, seen_here(home))
    jobs = [_job_of(request, subject) for _, subject in loaded.judged]
    found = offered_here(home, spec.hardware)
    costs = run_costs(found.offers, spec.hardware, market)
    variants = tuple(title for title, _ in loaded.judged if title)

    constraints = _constraints(request, jobs, spec.hardware)
    placement = choose_for_config(
        costs, jobs, constraints, _variants_of(spec.hardware) if variants else none_of
    )
    best = placement.best
    saving = (
        save_advice(best.costs.quote, spec, forecast) if best is not None and best.costs is not None else ""
    )
    basis, length = costs.market.basis, costs.market.length
    return FoundMachines(
        str(config),
        _described(jobs[0], market.work.steps, request),
        constraints,
        placement,
        variants,
        basis,
        saving,
        found.prices,
        length=length,
    )


def _for_model(
    home: Home, request: FindRequest, title: str, judged: Sequence[tuple[str, Subject]], named: HardwareSpec
) -> FoundMachines:
    """Return the choice for the model that the request names. `judged`, `named`: variants and hardware of a
    config that limits it.
    """
    seen, training = seen_here(home), _training(request)
    guess = guessed_tokens(
        (seen or NOTHING_SEEN).lengths, trained_words(request.model, training.method, rl=request.rl)
    )
    tokens, length = _tokens(request, guess)
    job = ModelTraining(_model(request), training, tokens, request.rl)
    hardware = named if request.config is not None else None
    constraints, variants = (
        _constraints(request, [job.on(1)], hardware),
        tuple(title for title, _ in judged if title),
    )

    # All machines match this, so that each rejected one is listed with its reason.
    providers = allowed_providers(named)
    found = offered_here(
        home, HardwareSpec(providers=providers if is_rented(providers) else (), disk_gib=constraints.disk_gib)
    )
    market = Market(Work(), seen or NOTHING_SEEN, has_store=seen is not None)

    def chosen(of: ModelTraining, within: MachineConstraints) -> Placement:
        return choose(
            found.offers,
            of,
            within,
            _variants_of(named) if variants else none_of,
            market=market,
            image=named.image,
        )

    placement = chosen(job, constraints)
    ways = () if placement.best is not None else tuple(_ways(job, constraints, chosen))
    return FoundMachines(
        title,
        job,
        constraints,
        placement,
        variants,
        market.basis,
        prices=found.prices,
        ways=ways,
        length=length,
    )


def _ways(
    job: ModelTraining,
    constraints: MachineConstraints,
    chosen: Callable[[ModelTraining, MachineConstraints], Placement],
) -> Iterator[str]:
    """Yield what would fit where nothing does: the same training on another number of GPUs, and adapters on
    the number that was asked for.
    """
    tries: list[tuple[str, ModelTraining, MachineConstraints]] = []
    if constraints.gpus is not None:
        tries += [
            (flag(Option(SettingAdvice.GPUS, str(count))), job, replace(constraints, gpus=count))
            for count in COUNTS
            if count > constraints.gpus
        ][:GPUS_TRIED_MAX]
    if job.training.method is Method.FULL:
        lora = replace(job, training=replace(job.training, method=Method.LORA))
        tries.append(
            (
                flag(Option(SettingAdvice.LORA)),
                lora,
                replace(constraints, disk_gib=min(constraints.disk_gib, lora.on(1).disk_gib())),
            )
        )
    for option, changed, within in tries:
        best = chosen(changed, within).best
        if best is not None and best.costs is not None:
            yield f"with {option}: {machine(best.offer)} from {best.offer.provider}, {best.costs.quote.why}"


def _loaded(home: Home, request: FindRequest, config: Path) -> LoadedConfig:
    """Read the config, with the values of the request that replace its own, as they would at a launch."""
    loaded = loaded_config(config, home.environment)
    changes = (
        dict(_changes(request, loaded.spec.hardware))
        if loaded.spec is not None and not (request.model or request.params)
        else {}
    )
    if not changes:
        return loaded
    read = read_config(config, settings=[setting_of(key, value, key) for key, value in changes.items()])
    if read.spec is None:
        fix = Advice(Call(Operation.VALIDATE, str(config)), " shows why")
        raise UsageError(f"{config} cannot be read as a config with {', '.join(changes)} changed", fix=fix)
    return of_config(read)


def _changes(request: FindRequest, hardware: HardwareSpec) -> Iterator[tuple[str, object]]:
    """Yield the keys of the config that the request replaces. A number of GPUs chooses among variants, which
    stay as they are.
    """
    if request.gpus is not None and hardware.gpus and not hardware.variants:
        yield "hardware.count", request.gpus
    if request.usd_per_hour_max is not None:
        yield "hardware.usd_per_hour_max", request.usd_per_hour_max
    if request.spot is not None:
        yield "hardware.spot", str(Spot.ONLY if request.spot else Spot.NEVER)
    if request.disk_gib is not None:
        yield "hardware.disk_gib", request.disk_gib
    if request.kinds:
        named = [
            kind
            for kind in (*hardware.gpus, *sorted(gpus.RENTED))
            if any(_names(word, kind) for word in request.kinds)
        ]
        yield "hardware.gpus", list(dict.fromkeys(named)) or list(request.kinds)


def _names(word: str, kind: str) -> bool:
    """Return whether a person who says this word may mean the kind of GPU."""
    return any(
        gpus.plain(word) in gpus.names(kind, socket) for socket in ("", "PCIe", "SXM4", "SXM5", "SXM6")
    )


def _tokens(request: FindRequest, guess: Guess | None) -> tuple[float, str]:
    """Return on how many tokens the model is trained, and in words where that is from; "" if the request says
    it.
    """
    if request.tokens is not None:
        return request.tokens, ""
    if guess is None:
        return (
            TOKENS,
            f"{TOKENS:,.0f} tokens are assumed, because no finished run of this model and method tells how "
            "many it takes",
        )
    return guess.amount, guess.text("tokens")


def _job_of(request: FindRequest, subject: Subject) -> JobDescription:
    """Return what the config trains. Raises UsageError if it does not say what, and the request does not
    either.
    """
    plan = plan_of(subject)
    if plan is not None:
        return plan
    count = subject.spec.hardware.count if subject.spec is not None else 1
    return ModelTraining(_model(request), _training(request), request.tokens or TOKENS, request.rl).on(count)


def _described(job: JobDescription, steps: int | None, request: FindRequest) -> ModelTraining:
    """Return what a config trains in this number of steps; None: not known."""
    return ModelTraining(
        job.model, job.training, (steps or 0) * job.batch_tokens or request.tokens or TOKENS, job.is_rl
    )


def _variants_of(hardware: HardwareSpec) -> Callable[[Offer], int]:
    """Return a function that returns the number of the variant that an offer gets, from 1 on; 0 if it fits
    none.
    """

    def variant_for(offer: Offer) -> int:
        number = variant_of(offer, hardware)
        return number + 1 if number is not None else 0

    return variant_for


def _constraints(
    request: FindRequest, jobs: Sequence[JobDescription], hardware: HardwareSpec | None
) -> MachineConstraints:
    """Return the constraints of the request, and those of the config where the request has none."""
    disk_gib = max(job.disk_gib() for job in jobs)
    if hardware is None:
        spot = Spot.PREFER if request.spot is None else Spot.ONLY if request.spot else Spot.NEVER
        return MachineConstraints(
            request.gpus, request.usd_per_hour_max, spot, request.kinds, request.disk_gib or disk_gib
        )
    return MachineConstraints(
        request.gpus or (hardware.count if hardware.gpus and not hardware.variants else None),
        hardware.usd_per_hour_max if request.usd_per_hour_max is None else request.usd_per_hour_max,
        hardware.spot if request.spot is None else Spot.ONLY if request.spot else Spot.NEVER,
        request.kinds or hardware.gpus,
        request.disk_gib or hardware.disk_gib,
    )


def _model(request: FindRequest) -> Model:
    name, params = request.model, request.params
    if not name and not params:
        fix = Advice(
            "write ",
            Option(SettingAdvice.MODEL, "Qwen/Qwen3-8B"),
            ", or ",
            Option(SettingAdvice.PARAMS, "8B"),
        )
        raise UsageError(
            "which model?"
            if request.config is None
            else f"{request.config} does not say which model is trained",
            fix=fix,
        )
    # An explicit size takes precedence over the name.
    found = models.sized(params) if params else models.resolve_model(name)
    if found is None:
        wrong = (
            f"{params} is not a model size"
            if params
            else f"the model {name} is unknown, and its name does not contain its size"
        )
        size, mixture = Option(SettingAdvice.PARAMS, "7B"), Option(SettingAdvice.PARAMS, "30B-A3B")
        fix = Advice(
            "write its size, such as ",
            size,
            ", or ",
            mixture,
            " for a mixture of experts with 3B active parameters",
        )
        raise UsageError(wrong, fix=fix)
    return found


def _training(request: FindRequest) -> Training:
    method = Method.LORA if request.lora else Method.FULL
    return usual_training(method, request.seq_len, rl=request.rl, bf16=request.bf16)
