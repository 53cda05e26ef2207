"""Examples of each command, shown below its help and in docs/cli.md. A test parses every one of them."""

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "run": (
        ("launch a config", "prime-train run configs/demo.yaml"),
        ("without a config, for at most 5 dollars", "prime-train run --usd 5 -- python train.py --lr 1e-4"),
        (
            "with values that override the config's",
            "prime-train run configs/demo.yaml --set trainer.steps=5 --set 'tags=[try]' -e SEED=1",
        ),
        (
            "from step 200 of another run",
            "prime-train run configs/demo.yaml --from demo-x7k2p@200 --set trainer.steps=400",
        ),
        ("show what would be rented, and why", "prime-train run configs/demo.yaml --dry-run"),
        ("in a script", 'prime-train run -q configs/demo.yaml --name "night-3"'),
    ),
    "status": (
        ("all runs", "prime-train status"),
        ("follow one run until it ends", "prime-train status demo --watch"),
        ("what failed in the last two days", "prime-train status --state failed --since 2d"),
        ("by tag and name, for a script", "prime-train status --tag paper --name 'qwen-*' --json"),
    ),
    "logs": (
        ("show the history and the end of the log", "prime-train logs demo"),
        ("follow the log as it is written", "prime-train logs demo -f"),
        ("errors of the second attempt", "prime-train logs demo --attempt 2 --grep Error --lines 100"),
        (
            "the last ten minutes, by a pattern",
            "prime-train logs demo --since 10m -E --grep 'loss=(nan|inf)'",
        ),
        ("the log of its inference server", "prime-train logs demo --component inference"),
    ),
    "diagnose": (
        ("explain what happened, and why", "prime-train diagnose demo"),
        ("ask what the end of any trainer's log means", "prime-train diagnose --log train.log --exit-code 1"),
    ),
    "page": (("write a run's page as one HTML file", "prime-train page demo"),),
    "profile": (
        ("show what the time of a step is spent on", "prime-train profile demo"),
        (
            "the same of a config, by a probe of a few steps",
            "prime-train profile configs/demo.yaml --steps 5",
        ),
    ),
    "compare": (
        ("with the newest run on the base branch", "prime-train compare demo"),
        ("with another run", "prime-train compare demo qwen-sft-x4k2p"),
    ),
    "outputs list": (("list the newest outputs, logs and metrics", "prime-train outputs demo"),),
    "outputs get": (
        ("download all of them", "prime-train outputs demo get results"),
        (
            "as the first attempt left them, a part only",
            "prime-train outputs demo get first --attempt 1 --only 'results/**'",
        ),
    ),
    "outputs diff": (
        ("show what the last attempt changed", "prime-train outputs demo diff"),
        ("between two steps", "prime-train outputs demo diff @100 @200"),
    ),
    "tensorboard": (("write event files and start TensorBoard", "prime-train tensorboard demo --start"),),
    "bundle": (
        ("write all that reproduces and explains a run", "prime-train bundle demo"),
        (
            "with the files of its newest checkpoint",
            "prime-train bundle demo --weights --out demo-with-weights.tar.zst",
        ),
        (
            "with a reference to these files in the bucket instead",
            "prime-train bundle demo --weights-in-bucket",
        ),
        ("sign it", "prime-train bundle demo --sign ~/.ssh/id_ed25519"),
        ("check one that was handed over", "prime-train bundle --verify demo-x4k2p.tar.gz"),
        (
            "check that a colleague has signed it",
            "prime-train bundle --verify demo-x4k2p.tar.gz --signer colleague.pub",
        ),
    ),
    "image build": (
        (
            "build the image that a config describes",
            "prime-train image build configs/my-run.yaml --name ghcr.io/me/my-run",
        ),
        ("print its Dockerfile", "prime-train image build configs/my-run.yaml --print"),
        ("write what it is built from", "prime-train image build configs/my-run.yaml --output context"),
    ),
    "agent": (
        (
            "on a machine whose agent has ended",
            "prime-train agent --ticket ~/.prime-train/demo-x4k2p-e1/ticket.json",
        ),
        ("with a ticket from elsewhere", "prime-train agent --ticket ticket.json --disk /data"),
    ),
    "ssh": (
        ("open a shell on its machine", "prime-train ssh demo"),
        ("see its TensorBoard at http://localhost:6006", "prime-train ssh demo -L 6006:localhost:6006"),
    ),
    "stop": (
        ("save, upload and give back the machine", "prime-train stop demo"),
        ("several", "prime-train stop demo qwen-sft-x4k2p"),
        ("all runs, without confirmation", "prime-train stop --all --yes"),
    ),
    "resume": (
        ("from its newest checkpoint", "prime-train resume demo"),
        (
            "with more money and a changed config",
            "prime-train resume demo --usd 20 --config configs/demo.yaml",
        ),
    ),
    "rm": (
        ("hide ended runs from status", "prime-train rm demo qwen-sft-x4k2p"),
        ("restore one from the archive", "prime-train rm --undo demo"),
    ),
    "init": (
        ("answer a few questions", "prime-train init"),
        ("for your own script", "prime-train init --command 'python train.py' --budget 20 --yes"),
        ("a config that is ready to run, from configs/presets", "prime-train init --preset trl-grpo --yes"),
    ),
    "import": (
        ("show the config that a SkyPilot task would become", "prime-train import sky.yaml"),
        ("write it, with a budget", "prime-train import job.yaml --usd 20 --output configs/my-run.yaml"),
        (
            "a run of Prime's hosted training, as one of prime-rl",
            "prime-train import hosted.toml --usd 20 --output configs/my-run.yaml",
        ),
    ),
    "try": (
        ("see how a script saves, reports and resumes", "prime-train try -- python train.py"),
        (
            "the same, and write the config of a run",
            "prime-train try --save configs/mnist.yaml -- python train.py",
        ),
        ("prove a config of one's own, which then names it", "prime-train try configs/mnist.yaml"),
        ("prove it on rented machines, for cents", "prime-train try configs/mnist.yaml --on cheapest"),
    ),
    "validate": (
        ("all configs in a folder", "prime-train validate configs"),
        ("for a script", "prime-train validate configs/demo.yaml --json"),
        ("what is fine, too", "prime-train validate -v configs/qwen3-4b-lora.yaml"),
    ),
    "lint": (("a fast check, for editors and hooks", "prime-train lint configs/demo.yaml"),),
    "rules": (
        ("all codes", "prime-train rules"),
        ("explain one rule", "prime-train rules PT020"),
    ),
    "export": (
        ("as a task of SkyPilot", "prime-train export configs/demo.yaml --format skypilot"),
        (
            "as a Job with an image of your own",
            "prime-train export configs/demo.yaml --format kubernetes --image registry.example/demo:1",
        ),
        (
            "with a price, so that its dollars are limited",
            "prime-train export configs/demo.yaml --format dstack --usd-per-hour 12",
        ),
    ),
    "schema": (("write the schema for an editor", "prime-train schema --out configs/schema.json"),),
    "config save": (
        ("keep a version", "prime-train config save configs/demo.yaml --note 'before the sweep'"),
        ("keep a version under a name", "prime-train config save configs/demo.yaml --name baseline"),
    ),
    "config list": (
        ("list the versions and the runs that used them", "prime-train config list configs/demo.yaml"),
        ("list all configs that have versions", "prime-train config list"),
    ),
    "config diff": (
        ("show what changed since version 1", "prime-train config diff configs/demo.yaml 1"),
        ("compare two versions by their names", "prime-train config diff configs/demo.yaml baseline sweep"),
    ),
    "config restore": (("restore version 1", "prime-train config restore configs/demo.yaml 1"),),
    "memory": (("check whether it fits into GPU memory", "prime-train memory configs/demo.yaml"),),
    "cost": (("estimate what it costs", "prime-train cost configs/demo.yaml --usd-per-hour 20"),),
    "probe": (
        ("measure steps and memory before a long run", "prime-train probe configs/demo.yaml --follow"),
        (
            "measure on another kind of GPU",
            'prime-train probe configs/qwen3-4b-lora.yaml --usd 1 --set "hardware.gpus=[H100_80GB]"',
        ),
    ),
    "find": (("find machines for a model", "prime-train find --model Qwen/Qwen3-4B --gpus 2"),),
    "models list": (("list what is known about models", "prime-train models list"),),
    "models refresh": (("read the models again from Hugging Face", "prime-train models refresh"),),
    "verify-model": (
        (
            "check whether a model can be used",
            "prime-train verify-model Qwen/Qwen3-4B --gpu h100-80gb --gpus 2",
        ),
    ),
    "checkpoints list": (("list the checkpoints in the bucket", "prime-train checkpoints demo"),),
    "checkpoints verify": (
        ("verify the newest checkpoint, byte by byte", "prime-train checkpoints demo verify"),
    ),
    "checkpoints restore": (
        ("download the newest checkpoint", "prime-train checkpoints demo restore restored"),
    ),
    "checkpoints prune": (
        ("show what would be deleted", "prime-train checkpoints demo prune --keep 2 --dry-run"),
    ),
    "checkpoints export": (("write one archive", "prime-train checkpoints demo export demo.tar"),),
    "checkpoints pin": (("keep step 100 permanently", "prime-train checkpoints demo pin 100"),),
    "checkpoints unpin": (("no longer", "prime-train checkpoints demo unpin 100"),),
    "github init": (
        ("set up the repository of this folder", "prime-train github init"),
        ("show everything, and change nothing", "prime-train github init --dry-run"),
        (
            "without questions",
            "prime-train github init --repository acme/rl --url https://plane.example.org --yes",
        ),
        (
            "also store the key by which prices are read",
            "prime-train github init --secret PRIME_TRAIN_MARKET_KEY",
        ),
    ),
    "provider add": (
        ("enter a key, and check it", "prime-train provider add runpod"),
        (
            "count the machines that fit a config",
            "prime-train provider add lambda --config configs/demo.yaml",
        ),
        ("for the functions on AWS", "prime-train provider add runpod --to aws"),
    ),
    "provider list": (("list all providers", "prime-train provider list"),),
    "provider check": (
        ("ask all that are set up", "prime-train provider check"),
        (
            "how many machines of one fit a config",
            "prime-train provider check runpod --config configs/demo.yaml",
        ),
    ),
    "provider remove": (("delete its stored key", "prime-train provider remove runpod"),),
    "drill": (
        ("rent one machine, and see whether all works", "prime-train drill runpod"),
        ("a spot machine, for two dollars at most", "prime-train drill prime --spot --usd-max 2"),
    ),
    "serve": (
        ("run the control plane on this machine", "prime-train serve"),
        ("the same in the background, until prime-train down", "prime-train serve --background"),
    ),
    "down": (
        ("end the control plane of this machine", "prime-train down"),
        ("after its runs have saved and stopped", "prime-train down --stop-runs"),
    ),
    "watch": (("check all runs once", "prime-train watch --once"),),
    "dashboard link": (("print a link to the pages of all runs", "prime-train dashboard"),),
    "dashboard revoke": (
        ("revoke one link", "prime-train dashboard revoke 1f9c02ab"),
        ("revoke all of them", "prime-train dashboard revoke --all"),
    ),
    "key show": (
        ("print the settings for another machine", "prime-train key --show"),
        (
            "print the key for the jobs of pull requests, which can only read figures",
            "prime-train key --market --show",
        ),
    ),
    "key create": (
        (
            "trust the jobs of a repository's environment",
            "prime-train key create --launch --repository me/rl --github-oidc --environment gpu",
        ),
        (
            "for one person, 20 dollars a run",
            "prime-train key create --launch --repository me/rl --actor maya --usd-max 20 --expires 90d",
        ),
    ),
    "key list": (("list the launch keys", "prime-train key list"),),
    "key revoke": (("revoke one", "prime-train key revoke 4f2a9c1d"),),
    "deploy": (("onto AWS", "prime-train deploy"),),
    "doctor": (("check the providers, and the deployment to AWS", "prime-train doctor"),),
    "destroy": (("remove it from AWS", "prime-train destroy"),),
    "demo": (("run a training that loses its machine and recovers", "prime-train demo"),),
}
"""Examples by command: each is the purpose and the command line."""


def epilog(command: str) -> str | None:
    """Return the examples of a command as the end of its help; None if it has none, as commands that only
    GitHub Actions call.
    """
    if command not in EXAMPLES:
        return None
    lines = [f"  {words}\n      {purpose}" for purpose, words in EXAMPLES[command]]
    # The mark keeps the lines from being joined.
    return "\b\nExamples:\n" + "\n".join(lines)
