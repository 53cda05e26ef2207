"""Rules about how processes are started and the environment variables they get (TR45x)."""

from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.estimate import gpus
from prime_train.rules.rule import Rule, Subject, Violation
from prime_train.rules.words import flags, words

FAMILY = "starting processes"
WORKERS_GET_S = 30
"""The seconds between torchrun's SIGTERM and its SIGKILL."""
_OFF = frozenset(("false", "0", "no", "off"))
_DESKTOP = ("RTX",)
_WANDB_MODES = frozenset(("online", "offline", "disabled", "shared", "dryrun", "run"))
_PROCESSES = {"torchrun": "nproc_per_node", "accelerate": "num_processes", "deepspeed": "num_gpus"}
_NO_SCRIPT = frozenset(("python", "python3", "torchrun", "accelerate", "deepspeed", "sh", "bash", "env", "uv", "source"))
_OVER_INFINIBAND = {
    "NCCL_IB_DISABLE": frozenset(("0", "false")),
    "NCCL_NET": frozenset(("ib",)),
    "NCCL_SOCKET_IFNAME": frozenset(("ib", "ib0", "ib1")),
}


def _still_disabled(subject: Subject) -> Iterator[Violation]:
    value = subject.spec.environment.get("WANDB_DISABLED") if subject.spec is not None else None
    if value is not None and value.lower() in _OFF:
        yield Violation(("environment", "WANDB_DISABLED"), f"W&B is disabled by WANDB_DISABLED={value} as by any other value")


def _more_processes(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus or spec.trainer.kind != "command":
        return
    started = {word.rpartition("/")[2] for word in words(spec.trainer.command)}
    wanted_by = {flag for launcher, flag in _PROCESSES.items() if launcher in started}
    name, wanted = next(((name, value) for name, value in flags(spec.trainer.command) if name in wanted_by), ("", ""))
    if wanted.isdigit() and int(wanted) > spec.hardware.count:
        message = f"{wanted} processes share {spec.hardware.count} GPUs; NCCL refuses two of them on one GPU"
        yield Violation(("trainer", "command"), message, word=_spelt(spec.trainer.command, name))


def _spelt(command: str, name: str) -> str:
    return next((word for word in (name, name.replace("_", "-")) if word in command), "")


def _no_mode(subject: Subject) -> Iterator[Violation]:
    mode = subject.spec.environment.get("WANDB_MODE") if subject.spec is not None else None
    if mode is not None and mode not in _WANDB_MODES and "$" not in mode:
        yield Violation(("environment", "WANDB_MODE"), f"{mode[:40]!r} is none of {', '.join(sorted(_WANDB_MODES))}")


def _no_script(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    split = words(spec.trainer.command) if spec is not None and spec.trainer.kind == "torchrun" else ()
    if split and (split[0].rpartition("/")[2] in _NO_SCRIPT or "=" in split[0]):
        message = f"kind torchrun runs a script: {split[0][:60]} is none"
        fix = "begin with the script, and say workers: for the processes; or write kind: command"
        yield Violation(("trainer", "command"), message, fix, word=split[0])


def _over_infiniband(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    kinds = [gpus.facts(kind) for kind in spec.hardware.gpus] if spec is not None else []
    if spec is None or not kinds or any(kind is None or kind.linked for kind in kinds):
        return
    for name, value in spec.environment.items():
        if name == "NCCL_IB_HCA" or value.lower() in _OVER_INFINIBAND.get(name, ()):
            yield Violation(("environment", name), f"{name}={value[:40]} asks for InfiniBand; machines with such GPUs seldom have it")


def _own_restarts(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or "torchrun" not in {word.rpartition("/")[2] for word in words(spec.trainer.command)}:
        return
    times = next((value for name, value in flags(spec.trainer.command) if name == "max_restarts"), "")
    if times.isdigit() and int(times) > 0:
        message = f"torchrun starts its workers again up to {times} times by itself, without a step to resume"
        yield Violation(("trainer", "command"), message, word=_spelt(spec.trainer.command, "max_restarts"))


def _killed_sooner(subject: Subject) -> Iterator[Violation]:
    spec, config = subject.spec, subject.config
    if spec is None or config is None or spec.trainer.kind != "torchrun" or spec.trainer.workers < 2:
        return
    if config.at("trainer", "stop_s") is not None and spec.trainer.stop_s > WORKERS_GET_S:
        message = f"torchrun kills its workers {WORKERS_GET_S} s after the signal, {spec.trainer.stop_s} s or not"
        yield Violation(("trainer", "stop_s"), message)


def _card_to_card(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.hardware.count < 2 or not spec.hardware.gpus:
        return
    kinds = [gpus.facts(kind) for kind in spec.hardware.gpus]
    if any(kind is None or kind.linked or not kind.family.startswith(_DESKTOP) for kind in kinds):
        return
    if not any(name.startswith("NCCL_") for name in spec.environment):
        yield Violation(("hardware", "gpus"), "such GPUs talk over PCIe, and rented machines with them seldom have InfiniBand", on_key=True)


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
    Rule(
        "TR456",
        Severity.ERROR,
        "a command where a script is wanted",
        "What is started is `torchrun ... COMMAND`, or `python3 COMMAND` with one worker: it looks for a Python file of that name.",
        "begin with the script",
        FAMILY,
        _no_script,
        "spec",
    ),
    Rule(
        "TR458",
        Severity.ERROR,
        "no mode of W&B",
        "wandb refuses it when the run begins.",
        "write online or offline",
        FAMILY,
        _no_mode,
        "spec",
    ),
    Rule(
        "TR457",
        Severity.WARNING,
        "InfiniBand that is not there",
        "NCCL fails to start, or waits for a device that is not there, at the first collective call.",
        "environment: {NCCL_IB_DISABLE: '1'}",
        FAMILY,
        _over_infiniband,
        "spec",
    ),
)
