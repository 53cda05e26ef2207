"""Examples of each command, shown below its help and in docs/cli.md. A test parses every one of them."""

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "run": (
        ("launch a config", "prime-train run configs/demo.yaml"),
        ("without a config, for at most 5 dollars", "prime-train run --usd 5 -- python train.py --lr 1e-4"),
        ("other values than the config's", "prime-train run configs/demo.yaml --set trainer.steps=5 --set 'tags=[try]' -e SEED=1"),
        ("what would be rented, and why", "prime-train run configs/demo.yaml --dry-run"),
        ("in a script", 'prime-train run -q configs/demo.yaml --name "night-3"'),
    ),
    "status": (
        ("all runs", "prime-train status"),
        ("one run, until it is over", "prime-train status demo --watch"),
        ("what failed in the last two days", "prime-train status --state failed --since 2d"),
        ("by tag and name, for a script", "prime-train status --tag paper --name 'qwen-*' --json"),
    ),
    "logs": (
        ("history, and the end of the log", "prime-train logs demo"),
        ("as it is written", "prime-train logs demo -f"),
        ("errors of the second attempt", "prime-train logs demo --attempt 2 --grep Error --lines 100"),
        ("the last ten minutes, by a pattern", "prime-train logs demo --since 10m -E --grep 'loss=(nan|inf)'"),
    ),
    "diagnose": (("what happened, and why", "prime-train diagnose demo"),),
    "page": (("a run as one HTML file", "prime-train page demo"),),
    "profile": (("where a step's time goes", "prime-train profile demo"),),
    "ssh": (("a shell on its machine", "prime-train ssh demo"),),
    "stop": (
        ("save, upload, give the machine back", "prime-train stop demo"),
        ("several", "prime-train stop demo qwen-sft-x4k2p"),
        ("all, without being asked", "prime-train stop --all --yes"),
    ),
    "resume": (
        ("from its newest checkpoint", "prime-train resume demo"),
        ("with more money and a changed config", "prime-train resume demo --usd 20 --config configs/demo.yaml"),
    ),
    "rm": (
        ("leave ended runs out of status", "prime-train rm demo qwen-sft-x4k2p"),
        ("take one back", "prime-train rm --undo demo"),
    ),
    "init": (
        ("answer a few questions", "prime-train init"),
        ("for a script of your own", "prime-train init --command 'python train.py' --budget 20 --yes"),
    ),
    "validate": (
        ("all configs of a folder", "prime-train validate configs"),
        ("for a script", "prime-train validate configs/demo.yaml --json"),
    ),
    "lint": (("fast, for editors and hooks", "prime-train lint configs/demo.yaml"),),
    "rules": (
        ("all codes", "prime-train rules"),
        ("what one means", "prime-train rules PT020"),
    ),
    "schema": (("for an editor", "prime-train schema --out configs/schema.json"),),
    "config save": (("keep a version", "prime-train config save configs/demo.yaml --note 'before the sweep'"),),
    "config list": (("versions, and the runs that used them", "prime-train config list configs/demo.yaml"),),
    "config diff": (("what changed since version 1", "prime-train config diff configs/demo.yaml 1"),),
    "config restore": (("back to version 1", "prime-train config restore configs/demo.yaml 1"),),
    "memory": (("will it fit?", "prime-train memory configs/demo.yaml"),),
    "cost": (("what will it cost?", "prime-train cost configs/demo.yaml --usd-per-hour 20"),),
    "find": (("machines for a model", "prime-train find --model Qwen/Qwen3-4B --gpus 2"),),
    "models list": (("what is known of models", "prime-train models list"),),
    "models refresh": (("read Hugging Face again", "prime-train models refresh"),),
    "verify-model": (("can it be used?", "prime-train verify-model Qwen/Qwen3-4B --gpu h100-80gb --gpus 2"),),
    "checkpoints list": (("what is in the bucket", "prime-train checkpoints demo"),),
    "checkpoints verify": (("read the newest again, byte by byte", "prime-train checkpoints demo verify"),),
    "checkpoints restore": (("fetch the newest", "prime-train checkpoints demo restore restored"),),
    "checkpoints prune": (("what would go", "prime-train checkpoints demo prune --keep 2 --dry-run"),),
    "checkpoints export": (("as one archive", "prime-train checkpoints demo export demo.tar"),),
    "checkpoints pin": (("keep step 100 for ever", "prime-train checkpoints demo pin 100"),),
    "checkpoints unpin": (("no longer", "prime-train checkpoints demo unpin 100"),),
    "serve": (("the control plane, on this machine", "prime-train serve"),),
    "watch": (("look after all runs once", "prime-train watch --once"),),
    "dashboard": (("a link to all runs", "prime-train dashboard"),),
    "key": (("for another machine", "prime-train key --show"),),
    "deploy": (("onto AWS", "prime-train deploy"),),
    "doctor": (("does it work there?", "prime-train doctor"),),
    "destroy": (("take it off AWS", "prime-train destroy"),),
    "demo": (("a training that loses its machine", "prime-train demo"),),
}
"""By command: what for, and the words."""


def epilog(command: str) -> str:
    """Return the examples of a command as the end of its help."""
    lines = [f"  {words}\n      {purpose}" for purpose, words in EXAMPLES[command]]
    # The mark keeps the lines from being joined.
    return "\b\nExamples:\n" + "\n".join(lines)
