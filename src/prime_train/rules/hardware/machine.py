"""Rules about the requested machine (HW1xx): GPU kinds and counts, disk, and host memory."""

import difflib
from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.core.registry.providers import is_own_machine, is_rented
from prime_train.estimate import gpus
from prime_train.rules.rule import Rule, Subject, Violation

FAMILY = "hardware"
GIB = 2**30
HOST_GIB_PER_GPU_MAX = 256
"""Machines with more host memory per GPU are seldom rented out."""
_DISK = ("hardware", "disk_gib")
_KINDS = tuple(sorted(gpus.GPUS))


def _of_family(kind: str) -> str:
    names = sorted(name for name in gpus.RENTED if gpus.plain(gpus.family(name)) == gpus.plain(gpus.family(kind)))
    return f"write {' or '.join(names)}" if names else ""


def _unknown_kind(subject: Subject) -> Iterator[Violation]:
    if subject.spec is None or is_own_machine(subject.spec.hardware.provider):
        return
    for place, kind in enumerate(subject.spec.hardware.gpus):
        if kind in gpus.RENTED:
            continue
        if gpus.facts(kind) is not None or not gpus.has_bf16(kind):
            if gpus.named_gb(kind):
                yield Violation(
                    ("hardware", "gpus", place), f"no {gpus.family(kind)} with {gpus.named_gb(kind)} GB is known", _of_family(kind)
                )
            continue
        near = difflib.get_close_matches(gpus.plain(gpus.family(kind)), _KINDS, 1, 0.6)
        fix = f"did you mean {near[0]}?" if near else "`prime-train find` shows the kinds that are for rent"
        yield Violation(("hardware", "gpus", place), f"{kind} is no kind of GPU that is known", fix)


def _without_memory(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for kinds without the memory size, as providers list GPUs by the whole name."""
    if subject.spec is None or not is_rented(subject.spec.hardware.provider):
        return
    for place, kind in enumerate(subject.spec.hardware.gpus):
        if kind in gpus.RENTED or gpus.facts(kind) is None or gpus.named_gb(kind):
            continue
        family = gpus.plain(kind.lower().removesuffix("gb").rsplit("_", 1)[0])
        names = sorted(name for name in gpus.RENTED if gpus.plain(gpus.family(name)) in (gpus.plain(kind), family))
        message = f"no offer is called {kind}: they are found by the whole name, with the memory"
        yield Violation(("hardware", "gpus", place), message, f"write {' or '.join(names)}" if names else "")


def _too_many_workers(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus or spec.trainer.kind != "torchrun":
        return
    if spec.trainer.workers > spec.hardware.count:
        message = f"{spec.trainer.workers} workers share {spec.hardware.count} GPUs; NCCL refuses two of them on one GPU"
        yield Violation(("trainer", "workers"), message, f"set trainer.workers to {spec.hardware.count}, or rent more GPUs")


def _idle_gpus(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus or spec.trainer.kind != "torchrun":
        return
    # A single worker may start others itself.
    if 1 < spec.trainer.workers < spec.hardware.count:
        idle = spec.hardware.count - spec.trainer.workers
        message = f"{idle} of {spec.hardware.count} GPUs have no worker, and are paid for"
        yield Violation(("hardware", "count"), message, f"set trainer.workers to {spec.hardware.count}, or rent {spec.trainer.workers}")


def _small_disk(subject: Subject) -> Iterator[Violation]:
    from prime_train.rules.hardware.host_bytes import disk_bytes
    from prime_train.rules.hardware.memory_plan import plan_of

    plan, spec, config = plan_of(subject), subject.spec, subject.config
    # Without disk_gib, machines come with their usual disk; the size of a local machine's disk is not known.
    if plan is None or spec is None or config is None or config.at(*_DISK) is None or is_own_machine(spec.hardware.provider):
        return
    model, saved, kept = disk_bytes(plan, subject)
    needed = model + saved * kept
    if needed > spec.hardware.disk_gib * GIB:
        message = (
            f"{spec.hardware.disk_gib} GiB of disk are less than {needed / GIB:.0f}: {model / GIB:.0f} for the model and what is served, "
            f"{kept} checkpoints of {saved / GIB:.0f} (those kept and the one being written)"
        )
        yield Violation(_DISK, message, f"set hardware.disk_gib to {_round_up(needed / GIB * 1.15 + 20)}")


def _more_than_the_disk(subject: Subject) -> Iterator[Violation]:
    spec, config = subject.spec, subject.config
    if spec is None or config is None or config.at(*_DISK) is None or is_own_machine(spec.hardware.provider):
        return
    most = spec.checkpoints.max_disk_gib
    if most is not None and most > spec.hardware.disk_gib:
        message = f"local checkpoints may take {most:g} GiB, and the disk has {spec.hardware.disk_gib}"
        yield Violation(("checkpoints", "max_disk_gib"), message, f"less than {spec.hardware.disk_gib}, or a larger hardware.disk_gib")


def _host_memory(subject: Subject) -> Iterator[Violation]:
    from prime_train.rules.hardware.host_bytes import host_bytes
    from prime_train.rules.hardware.memory_plan import plan_of

    plan, spec = plan_of(subject), subject.spec
    if plan is None or spec is None or not spec.hardware.gpus:
        return
    needed, most = host_bytes(plan), HOST_GIB_PER_GPU_MAX * spec.hardware.count * GIB
    if needed > most:
        message = (
            f"{needed / GIB:.0f} GiB are kept in the host's memory; machines with {spec.hardware.count} such GPUs seldom have more than "
            f"{most / GIB:.0f}"
        )
        yield Violation(("hardware", "count"), message, "more GPUs, and trainer.model.optim_cpu_offload = false if it fits them")


def _round_up(gib: float) -> int:
    return -int(-gib // 10) * 10


RULES = (
    Rule(
        "HW101",
        Severity.WARNING,
        "a kind of GPU that is not known",
        "Nothing of that name is for rent, so the run waits for an offer that never comes.",
        "`prime-train find` shows the kinds that are for rent",
        FAMILY,
        _unknown_kind,
        "spec",
    ),
    Rule(
        "HW102",
        Severity.WARNING,
        "a kind of GPU without its memory",
        "Offers are found by their whole name, such as H100_80GB: H100 alone finds none.",
        "write the name as `prime-train find` shows it",
        FAMILY,
        _without_memory,
        "spec",
    ),
    Rule(
        "HW103",
        Severity.ERROR,
        "more workers than GPUs",
        "Two workers of one GPU fail in NCCL's first call, after the machine was paid for.",
        "as many workers as GPUs",
        FAMILY,
        _too_many_workers,
        "spec",
    ),
    Rule(
        "HW104",
        Severity.NOTE,
        "GPUs without a worker",
        "They are rented for the whole run, and do nothing unless something else uses them.",
        "as many workers as GPUs",
        FAMILY,
        _idle_gpus,
        "spec",
    ),
    Rule(
        "HW105",
        Severity.ERROR,
        "less disk than the run will fill",
        "Saving fails with a full disk, at the earliest when the first checkpoints were made.",
        "a larger hardware.disk_gib",
        FAMILY,
        _small_disk,
        "prime_rl",
    ),
    Rule(
        "HW107",
        Severity.WARNING,
        "more room for checkpoints than the disk has",
        "Old checkpoints are deleted when they take this much; the disk is full before.",
        "less than hardware.disk_gib",
        FAMILY,
        _more_than_the_disk,
        "spec",
    ),
    Rule(
        "HW106",
        Severity.WARNING,
        "more offloaded than hosts have memory for",
        "The kernel kills the trainer when the host's memory is full, without a word in its log.",
        "more GPUs, or less offloading",
        FAMILY,
        _host_memory,
        "prime_rl",
    ),
)
