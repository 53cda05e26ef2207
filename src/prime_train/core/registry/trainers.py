"""The kinds of trainers: one row each, and one package below `prime_train.trainers` that implements it."""

from prime_train.core import prime_rl
from prime_train.core.registry.kinds import TrainerKind

TRAINERS: dict[str, TrainerKind] = {
    "command": TrainerKind("prime_train.trainers.command:CommandTrainer", "runs `command`"),
    "torchrun": TrainerKind(
        "prime_train.trainers.torchrun:TorchrunTrainer",
        "runs `command` (a script and its arguments) in `workers` processes; one worker needs no torch",
    ),
    "prime_rl": TrainerKind(
        "prime_train.trainers.prime_rl:PrimeRlTrainer",
        "runs what `prime_rl` says",
        part="prime_rl",
        own_command="put arguments under prime_rl.overrides",
        needs_steps="it may end with code 0 after a crash",
        layout=prime_rl.layout,
    ),
}
