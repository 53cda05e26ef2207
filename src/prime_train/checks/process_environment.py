"""Rules about how processes are started and the environment variables they get (TR45x)."""

from collections.abc import Iterator

from prime_train.estimate import gpus
from prime_train.spec.config_format import flags, spelling_of, words
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.conventions.environment_by_version import RunMachine, possible
from prime_train.trainers.registry import TRAINERS

TOPIC = "starting processes"
WORKERS_GET_S = 30
"""The seconds between torchrun's SIGTERM and its SIGKILL."""
_OFF = frozenset(("false", "0", "no", "off"))
_DESKTOP = ("RTX",)
_WANDB_MODES = frozenset(("online", "offline", "disabled", "shared", "dryrun", "run"))
_NO_SCRIPT = frozenset(
    ("python", "python3", "torchrun", "accelerate", "deepspeed", "sh", "bash", "env", "uv", "source")
)
_OVER_INFINIBAND = {
    "NCCL_IB_DISABLE": frozenset(("0", "false")),
    "NCCL_NET": frozenset(("ib",)),
    "NCCL_SOCKET_IFNAME": frozenset(("ib", "ib0", "ib1")),
}


RULES = Rules(TOPIC, requires="spec")


@RULES.warning(
    "TR451",
    "W&B disabled by a value such as false",
    why="Setting the variable disables W&B whatever its value is, so the run is not tracked.",
    fix="delete WANDB_DISABLED",
)
def still_disabled(subject: Subject) -> Iterator[Violation]:
    value = subject.spec.environment.get("WANDB_DISABLED") if subject.spec is not None else None
    if value is not None and value.lower() in _OFF:
        yield Violation(
            ("environment", "WANDB_DISABLED"),
            f"WANDB_DISABLED={value} disables W&B, as any value of this variable does",
        )


@RULES.error(
    "TR458",
    "an unknown W&B mode",
    why="wandb rejects the value when the run begins.",
    fix="write online or offline",
)
def no_mode(subject: Subject) -> Iterator[Violation]:
    mode = subject.spec.environment.get("WANDB_MODE") if subject.spec is not None else None
    if mode is not None and mode not in _WANDB_MODES and "$" not in mode:
        yield Violation(
            ("environment", "WANDB_MODE"), f"{mode[:40]!r} is not one of {', '.join(sorted(_WANDB_MODES))}"
        )


@RULES.error(
    "TR456",
    "a command in place of a script",
    why="The agent runs `torchrun ... COMMAND`, or `python3 COMMAND` with one worker, so COMMAND must begin "
    "with a Python file.",
    fix="begin the command with the script",
)
def no_script(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    split = words(spec.trainer.command) if spec is not None and spec.trainer.kind == "torchrun" else ()
    if split and (split[0].rpartition("/")[2] in _NO_SCRIPT or "=" in split[0]):
        message = f"kind: torchrun needs a command that begins with a script; {split[0][:60]} is not a script"
        fix = (
            "begin the command with the script and set workers: to the number of processes, or write kind: "
            "command"
        )
        yield Violation(("trainer", "command"), message, fix, word=split[0])


@RULES.warning(
    "TR457",
    "InfiniBand on machines without it",
    why="NCCL fails to start, or waits at the first collective call for a device that does not exist.",
    fix="write environment: {NCCL_IB_DISABLE: '1'}",
)
def over_infiniband(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    kinds = [gpus.facts(kind) for kind in spec.hardware.gpus] if spec is not None else []
    if spec is None or not kinds or any(kind is None or kind.linked for kind in kinds):
        return
    for name, value in spec.environment.items():
        if name == "NCCL_IB_HCA" or value.lower() in _OVER_INFINIBAND.get(name, ()):
            yield Violation(
                ("environment", name),
                f"{name}={value[:40]} requests InfiniBand, which machines with these GPUs seldom have",
            )


@RULES.note(
    "TR453",
    "restarts within an attempt",
    why="Workers that torchrun restarts do not receive the checkpoint to resume from, and their logs hide "
    "the first failure.",
    fix="delete --max-restarts: after a crash, prime-train starts another attempt, which resumes",
)
def own_restarts(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or "torchrun" not in {word.rpartition("/")[2] for word in words(spec.trainer.command)}:
        return
    times = next((value for name, value in flags(spec.trainer.command) if name == "max_restarts"), "")
    if times.isdigit() and int(times) > 0:
        message = (
            f"torchrun restarts its workers up to {times} times by itself, without a checkpoint "
            "to resume from"
        )
        yield Violation(
            ("trainer", "command"), message, word=spelling_of(spec.trainer.command, "max_restarts")
        )


@RULES.note(
    "TR454",
    "a grace period longer than torchrun's",
    why="A checkpoint that is saved on SIGTERM must be complete within torchrun's own 30 s.",
    fix="save more often instead",
)
def killed_sooner(subject: Subject) -> Iterator[Violation]:
    spec, config = subject.spec, subject.config
    if (
        spec is None
        or config is None
        or not TRAINERS[spec.trainer.kind].starts_workers
        or spec.trainer.workers < 2
    ):
        return
    if config.at("trainer", "stop_s") is not None and spec.trainer.stop_s > WORKERS_GET_S:
        message = (
            f"torchrun kills its workers {WORKERS_GET_S} s after SIGTERM, although trainer.stop_s "
            "is "
            f"{spec.trainer.stop_s} s"
        )
        yield Violation(("trainer", "stop_s"), message)


@RULES.error(
    "TR459",
    "arguments with which the trainer saves nothing or starts over",
    why="The trainer would begin at step 0 without an error, on each machine anew.",
    fix="delete the argument",
)
def conflicting(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or subject.started is not None:
        return  # what a script says is overridden by the arguments that a launch adds to it
    for conflict in TRAINERS[spec.trainer.kind].conflicts(spec):
        message, _, fix = conflict.rpartition("; ")
        yield Violation(
            ("trainer", "resume" if message.startswith("trainer.resume") else "command"), message, fix
        )


@RULES.note(
    "TR455",
    "GPUs that communicate over PCIe",
    why="NCCL may hang at the first collective call when it looks for InfiniBand or peer access that the "
    "machine does not have.",
    fix="write environment: {NCCL_IB_DISABLE: '1'}, and add NCCL_P2P_DISABLE: '1' if NCCL still hangs",
)
def card_to_card(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.hardware.count < 2 or not spec.hardware.gpus:
        return
    kinds = [gpus.facts(kind) for kind in spec.hardware.gpus]
    if any(kind is None or kind.linked or not kind.family.startswith(_DESKTOP) for kind in kinds):
        return
    automatic = all(_is_set_automatically(kind, spec.hardware.count) for kind in spec.hardware.gpus)
    if not automatic and not any(name.startswith("NCCL_") for name in spec.environment):
        yield Violation(
            ("hardware", "gpus"),
            "these GPUs communicate over PCIe, and rented machines with them seldom have InfiniBand",
            on_key=True,
        )


def _is_set_automatically(kind: str, count: int) -> bool:
    """Return whether the agent keeps NCCL from looking for InfiniBand on machines with these GPUs."""
    return any(row.variable == "NCCL_IB_DISABLE" for row in possible(RunMachine((kind,) * count, count)))
