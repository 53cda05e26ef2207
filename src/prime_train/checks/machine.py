"""Rules about the requested machine (HW1xx): GPU kinds and counts, disk, and host memory."""

from collections.abc import Iterator

from prime_train.checks.host_bytes import disk_bytes, host_bytes
from prime_train.checks.memory_plan import plan_of
from prime_train.estimate import gpus
from prime_train.providers.kinds import allowed_providers, is_own_machine, is_rented
from prime_train.spec.config_format import variables
from prime_train.spec.launchers import spelling_of_processes
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.text.nearest import nearest
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.settings.launched import machines as launched_on
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.of_subject import training_of

TOPIC = "hardware"
GIB = 2**30
HOST_GIB_PER_GPU_MAX = 256
"""Host memory per GPU in GiB above which machines are seldom rented out."""
_DISK = ("hardware", "disk_gib")
_KINDS = tuple(sorted(gpus.GPUS))
_VISIBLE = "CUDA_VISIBLE_DEVICES"


RULES = Rules(TOPIC, requires="spec")


def _config_file(subject: Subject) -> str:
    return subject.config.file if subject.config is not None else ""


def _visible(subject: Subject) -> int | None:
    """Return the highest number of a GPU that the run makes visible to the trainer; None if it names none."""
    named = subject.spec.environment.get(_VISIBLE, "") if subject.spec is not None else ""
    numbers = variables(subject.command).get(_VISIBLE, named).split(",")
    if not all(number.isdecimal() and len(number) < 4 for number in numbers):
        return None
    return max(int(number) for number in numbers)


def _of_family(kind: str) -> str:
    names = sorted(
        name for name in gpus.RENTED if gpus.plain(gpus.family(name)) == gpus.plain(gpus.family(kind))
    )
    return f"write {' or '.join(names)}" if names else ""


@RULES.warning(
    "HW101",
    "an unknown kind of GPU",
    why="No machine with a GPU of that name is for rent, so the run waits for an offer that never comes.",
    fix="choose a kind that is for rent",
)
def unknown_kind(subject: Subject) -> Iterator[Violation]:
    if subject.spec is None or is_own_machine(allowed_providers(subject.spec.hardware)):
        return
    for place, kind in enumerate(subject.spec.hardware.gpus):
        if kind in gpus.RENTED:
            continue
        if gpus.facts(kind) is not None or not gpus.has_bf16(kind):
            if gpus.named_gb(kind):
                yield Violation(
                    ("hardware", "gpus", place),
                    f"{gpus.family(kind)} is not known with {gpus.named_gb(kind)} GB of memory",
                    _of_family(kind),
                )
            continue
        similar = nearest(gpus.plain(gpus.family(kind)), _KINDS)
        fix = f"did you mean {similar[0]}?" if similar else "choose a kind that is for rent"
        yield Violation(("hardware", "gpus", place), f"{kind} is not a known kind of GPU", fix)


@RULES.warning(
    "HW102",
    "a kind of GPU without its memory size",
    why="Offers are matched by the full name, such as H100_80GB. H100 alone matches none.",
    fix="write the full name, such as H100_80GB",
)
def without_memory(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for kinds without the memory size, as providers list GPUs by the full name."""
    if subject.spec is None or not is_rented(allowed_providers(subject.spec.hardware)):
        return
    for place, kind in enumerate(subject.spec.hardware.gpus):
        if kind in gpus.RENTED or gpus.facts(kind) is None or gpus.named_gb(kind):
            continue
        family = gpus.plain(kind.lower().removesuffix("gb").rsplit("_", 1)[0])
        names = sorted(
            name for name in gpus.RENTED if gpus.plain(gpus.family(name)) in (gpus.plain(kind), family)
        )
        message = f"no offer is named {kind}: the name must include the memory size"
        yield Violation(("hardware", "gpus", place), message, f"write {' or '.join(names)}" if names else "")


@RULES.error(
    "HW103",
    "more workers or processes than GPUs",
    why="Two of them on one GPU fail in NCCL's first call, on a machine that is already paid for.",
    fix="use as many workers as GPUs",
)
def too_many_workers(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus:
        return
    training = training_of(subject)
    started = training.processes if training is not None else processes(subject)
    visible = _visible(subject)
    if started.value is not None and not started.is_default and started.value > spec.hardware.count:
        place = started.place
        where = (
            f" ({place.file}:{place.line})"
            if place is not None and place.file not in ("", _config_file(subject))
            else ""
        )
        message = (
            f"the command starts {started.value} processes{where} on {spec.hardware.count} GPUs; NCCL allows "
            "only one process per GPU"
        )
        fix = f"start {spec.hardware.count}, or rent more GPUs"
        yield Violation(
            ("trainer", "command"), message, fix, word=spelling_of_processes(spec.trainer.command)
        )
    elif visible is not None and visible >= spec.hardware.count:
        message = f"{_VISIBLE} names GPU {visible}, and the machine has {spec.hardware.count}, counted from 0"
        yield Violation(("trainer", "command"), message, f"delete {_VISIBLE}", word=_VISIBLE)
    elif TRAINERS[spec.trainer.kind].starts_workers and spec.trainer.workers > spec.hardware.count:
        message = (
            f"{spec.trainer.workers} workers share {spec.hardware.count} GPUs; NCCL allows only "
            "one worker per GPU"
        )
        yield Violation(
            ("trainer", "workers"),
            message,
            f"set trainer.workers to {spec.hardware.count}, or rent more GPUs",
        )


@RULES.error(
    "HW109",
    "processes on several machines",
    why="A run has one machine: the processes of the others are waited for until a time limit, and then it "
    "fails.",
    fix="start all processes on one machine",
)
def several_machines(subject: Subject) -> Iterator[Violation]:
    training = training_of(subject)
    machines = training.machines if training is not None and training.machines.value else launched_on(subject)
    if machines.value is not None and machines.value > 1:
        message = f"the command is for {machines.value} machines, and a run has one"
        yield Violation(("trainer", "command"), message, word="nnodes")


@RULES.note(
    "HW104",
    "GPUs without a worker",
    why="They are rented for the entire run, and stay idle unless another process uses them.",
    fix="use as many workers as GPUs",
)
def idle_gpus(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus or not TRAINERS[spec.trainer.kind].starts_workers:
        return
    # A single worker may start others itself.
    if 1 < spec.trainer.workers < spec.hardware.count:
        idle = spec.hardware.count - spec.trainer.workers
        message = f"{idle} of {spec.hardware.count} GPUs have no worker, but are paid for"
        yield Violation(
            ("hardware", "count"),
            message,
            f"set trainer.workers to {spec.hardware.count}, or rent {spec.trainer.workers}",
        )


@RULES.error(
    "HW105",
    "less disk than the run will fill",
    why="The disk fills up and saving fails, possibly as early as the first checkpoints.",
    fix="set a larger hardware.disk_gib",
    requires="prime_rl",
)
def small_disk(subject: Subject) -> Iterator[Violation]:
    plan, spec, config = plan_of(subject), subject.spec, subject.config
    # Without disk_gib, machines come with their usual disk; the size of a local machine's disk is not known.
    if (
        plan is None
        or spec is None
        or config is None
        or config.at(*_DISK) is None
        or is_own_machine(allowed_providers(spec.hardware))
    ):
        return
    model, saved, kept = disk_bytes(plan, subject)
    needed = model + saved * kept
    if needed > spec.hardware.disk_gib * GIB:
        message = (
            f"{spec.hardware.disk_gib} GiB of disk are less than the {needed / GIB:.0f} GiB needed: "
            f"{model / GIB:.0f} for the model and the served weights, {kept} checkpoints of "
            f"{saved / GIB:.0f} (those kept and the one being written)"
        )
        yield Violation(_DISK, message, f"set hardware.disk_gib to {plan.disk_gib_for(needed)}")


@RULES.warning(
    "HW107",
    "a checkpoint limit above the disk's size",
    why="Old checkpoints are deleted only when they reach this limit, and the disk is full before that.",
    fix="write less than hardware.disk_gib",
)
def more_than_the_disk(subject: Subject) -> Iterator[Violation]:
    spec, config = subject.spec, subject.config
    if (
        spec is None
        or config is None
        or config.at(*_DISK) is None
        or is_own_machine(allowed_providers(spec.hardware))
    ):
        return
    most = spec.checkpoints.max_disk_gib
    if most is not None and most > spec.hardware.disk_gib:
        message = (
            f"local checkpoints may take {most:g} GiB, but the disk has only {spec.hardware.disk_gib} GiB"
        )
        yield Violation(
            ("checkpoints", "max_disk_gib"),
            message,
            f"write less than {spec.hardware.disk_gib}, or a larger hardware.disk_gib",
        )


@RULES.warning(
    "HW106",
    "more memory offloaded than hosts have",
    why="The kernel kills the trainer when the host's memory is full, and the trainer's log shows no reason.",
    fix="use more GPUs, or offload less",
    requires="prime_rl",
)
def host_memory(subject: Subject) -> Iterator[Violation]:
    plan, spec = plan_of(subject), subject.spec
    if plan is None or spec is None or not spec.hardware.gpus:
        return
    needed, most = host_bytes(plan), HOST_GIB_PER_GPU_MAX * spec.hardware.count * GIB
    if needed > most:
        message = (
            f"{needed / GIB:.0f} GiB are offloaded to the host's memory, but machines with "
            f"{spec.hardware.count} such GPUs seldom have more than {most / GIB:.0f}"
        )
        yield Violation(
            ("hardware", "count"),
            message,
            "use more GPUs, and set trainer.model.optim_cpu_offload = false if the optimizer then fits",
        )
