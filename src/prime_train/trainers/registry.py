"""The kinds of trainers: one row each, and one package below `prime_train.trainers.of_spec` that implements
it.
"""

from prime_train.spec.config_format import NULL
from prime_train.trainers.areal import conventions as areal
from prime_train.trainers.hf import conventions as hf
from prime_train.trainers.kind import TrainerKind
from prime_train.trainers.lightning import conventions as lightning
from prime_train.trainers.prime_rl import conventions as prime_rl
from prime_train.trainers.prime_rl.own_config import own_config
from prime_train.trainers.torchtitan import conventions as torchtitan
from prime_train.trainers.trm import conventions as trm
from prime_train.trainers.verl import conventions as verl

TRAINERS: dict[str, TrainerKind] = {
    "command": TrainerKind("prime_train.trainers.command:CommandTrainer", "runs `command`"),
    "torchrun": TrainerKind(
        "prime_train.trainers.torchrun:TorchrunTrainer",
        "runs `command` (a script and its arguments) in `workers` processes; one worker needs no torch",
        starts_workers=True,
    ),
    "hf": TrainerKind(
        "prime_train.trainers.hf.trainer:HfTrainer",
        "runs `command`, which trains with the Trainer of transformers, TRL or PEFT: a script and its "
        "arguments, in `workers` processes, or a program that starts its own, such as axolotl",
        starts_workers=True,
        layout=hf.layout,
        conflicts=hf.conflicts,
    ),
    "lightning": TrainerKind(
        "prime_train.trainers.lightning.trainer:LightningTrainer",
        "runs `command`, a script that trains with Lightning's Trainer, in `workers` processes",
        starts_workers=True,
        layout=lightning.layout,
        gathered_in=lightning.gathered_in,
        conflicts=lightning.conflicts,
    ),
    "torchtitan": TrainerKind(
        "prime_train.trainers.torchtitan.trainer:TorchtitanTrainer",
        "runs `command`, such as `-m torchtitan.train` with its arguments, in `workers` processes, and adds "
        "the arguments of checkpoints",
        starts_workers=True,
        names_folder=True,
        layout=torchtitan.layout,
        conflicts=torchtitan.conflicts,
    ),
    "verl": TrainerKind(
        "prime_train.trainers.verl.trainer:VerlTrainer",
        "runs `command`, a program of verl with its settings, and adds those of checkpoints",
        names_folder=True,
        restores_any_count=False,
        layout=verl.layout,
        conflicts=verl.conflicts,
    ),
    "areal": TrainerKind(
        "prime_train.trainers.areal.trainer:ArealTrainer",
        "runs `command`, a program of AReaL with its settings, and adds those of recovery",
        names_folder=True,
        restores_any_count=False,
        layout=areal.layout,
        conflicts=areal.conflicts,
        settings=areal.settings,
    ),
    "trm": TrainerKind(
        "prime_train.trainers.trm.trainer:TrmTrainer",
        "runs `command`, `pretrain.py` of tiny recursive models with its settings, in `workers` processes, "
        "and adds those of checkpoints",
        starts_workers=True,
        names_folder=True,
        layout=trm.layout,
        conflicts=trm.conflicts,
        settings=trm.settings,
    ),
    "prime_rl": TrainerKind(
        "prime_train.trainers.prime_rl.trainer:PrimeRlTrainer",
        "runs prime-rl as configured under `prime_rl`",
        config_section="prime_rl",
        command_advice="put arguments under prime_rl.overrides",
        needs_steps="it may exit with code 0 after a crash",
        names_folder=True,
        layout=prime_rl.layout,
        own_config=own_config,
        tokens_per_s=("perf/throughput",),
        null=NULL,
    ),
}
