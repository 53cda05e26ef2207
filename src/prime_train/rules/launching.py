"""How processes are started, and the variables they find (TR45x)."""

from collections.abc import Iterator

from prime_train.core import gpus
from prime_train.core.finding import Severity
from prime_train.rules.rule import Flaw, Rule, Subject
from prime_train.rules.words import flags, words

FAMILY = "starting processes"
WORKERS_GET_S = 30
"""Between torchrun's SIGTERM and its SIGKILL."""
_OFF = frozenset(("false", "0", "no", "off"))
_DESKTOP = ("RTX",)


def _still_disabled(subject: Subject) -> Iterator[Flaw]:
    value = subject.spec.environment.get("WANDB_DISABLED") if subject.spec is not None else None
    if value is not None and value.lower() in _OFF:
        yield Flaw(("environment", "WANDB_DISABLED"), f"W&B is disabled by WANDB_DISABLED={value} as by any other value")


def _more_processes(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus or spec.trainer.kind != "command":
        return
    if "torchrun" not in {word.rpartition("/")[2] for word in words(spec.trainer.command)}:
        return
    wanted = next((value for name, value in flags(spec.trainer.command) if name == "nproc_per_node"), "")
    if wanted.isdigit() and int(wanted) > spec.hardware.count:
        yield Flaw(("trainer", "command"), f"{wanted} processes share {spec.hardware.count} GPUs; NCCL refuses two of them on one GPU")


def _own_restarts(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or "torchrun" not in {word.rpartition("/")[2] for word in words(spec.trainer.command)}:
        return
    times = next((value for name, value in flags(spec.trainer.command) if name == "max_restarts"), "")
    if times.isdigit() and int(times) > 0:
        yield Flaw(("trainer", "command"), f"torchrun starts its workers again up to {times} times by itself, without a step to resume")


def _killed_sooner(subject: Subject) -> Iterator[Flaw]:
    spec, config = subject.spec, subject.config
    if spec is None or config is None or spec.trainer.kind != "torchrun" or spec.trainer.workers < 2:
        return
    if config.at("trainer", "stop_s") is not None and spec.trainer.stop_s > WORKERS_GET_S:
        message = f"torchrun kills its workers {WORKERS_GET_S} s after the signal, {spec.trainer.stop_s} s or not"
        yield Flaw(("trainer", "stop_s"), message)


def _card_to_card(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.hardware.count < 2 or not spec.hardware.gpus:
        return
    kinds = [gpus.facts(kind) for kind in spec.hardware.gpus]
    if any(kind is None or kind.linked or not kind.family.startswith(_DESKTOP) for kind in kinds):
        return
    if not any(name.startswith("NCCL_") for name in spec.environment):
        yield Flaw(("hardware", "gpus"), "such GPUs talk over PCIe, and rented machines with them seldom have InfiniBand", on_key=True)


RULES = (
    Rule(
        "TR451",
        Severity.WARNING,
        "W&B disabled by a false",
        "Its being set disables it, whatever it is set to: the run is tracked nowhere.",
        "delete WANDB_DISABLED",
        FAMILY,
        _still_disabled,
        "spec",
    ),
    Rule(
        "TR452",
        Severity.ERROR,
        "more processes than GPUs",
        "Two processes of one GPU fail in NCCL's first call, after the machine was paid for.",
        "as many processes as GPUs",
        FAMILY,
        _more_processes,
        "spec",
    ),
    Rule(
        "TR453",
        Severity.NOTE,
        "restarts within an attempt",
        "Workers that torchrun restarts are told nothing of the checkpoint to resume, and their logs hide which death was the first.",
        "delete --max-restarts: a death is answered by another attempt, which resumes",
        FAMILY,
        _own_restarts,
        "spec",
    ),
    Rule(
        "TR454",
        Severity.NOTE,
        "a grace that torchrun does not give",
        "A checkpoint saved on SIGTERM must be whole within torchrun's own 30 s.",
        "save more often instead",
        FAMILY,
        _killed_sooner,
        "spec",
    ),
    Rule(
        "TR455",
        Severity.NOTE,
        "GPUs that talk over PCIe",
        "Looking for InfiniBand or for peer access that is not there, NCCL may hang at the first collective call.",
        "environment: {NCCL_IB_DISABLE: '1'}, and NCCL_P2P_DISABLE: '1' where it hangs still",
        FAMILY,
        _card_to_card,
        "spec",
    ),
)
