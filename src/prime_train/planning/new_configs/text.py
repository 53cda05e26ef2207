"""The two config files of a new run: the one for prime-train and the one for prime-rl."""

import json
import textwrap

from prime_train.estimate import gpus
from prime_train.estimate.job import UTILIZATION
from prime_train.estimate.memory.phases import Method
from prime_train.planning.new_configs.plan import KEPT, LORA_RANK, InitChoices
from prime_train.trainers.prime_rl.install import install_own_environment

SAVE_EVERY = 8
KNOWN_REF = "559b4477"
"""The prime-rl commit whose settings are written here; the default if no other commit is given."""
LORA_ALPHA = 64
BATCH, GROUP = 128, 16
INCLUDED = "reverse-text"
"""Name of the environment that is part of prime-rl."""

_UV = 'env PATH="$HOME/.local/bin:$PATH" uv run --no-sync --project ../prime-rl'

_OVER_PCIE = """\
environment:
  NCCL_IB_DISABLE: "1"  # these GPUs communicate over PCIe; NCCL must not look for InfiniBand"""


_SETUP = """
setup:
  # It comes with prime-rl, which does not install it by itself.
  - >-
{}
"""


def _folded(command: str) -> str:
    """Return a command on lines of a terminal's width, as YAML joins them."""
    return textwrap.fill(command, 78, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def config(settings: InitChoices, folder: str) -> str:
    """Return the YAML config; `folder` is the folder of the trainer's file, relative to where runs are
    launched.
    """
    wanted = settings.wanted
    how = "LoRA" if settings.method is Method.LORA else "all weights"
    written_for = "  # of 2026-08-21, which rl.toml was written for" if wanted.ref == KNOWN_REF else ""
    facts = gpus.facts(wanted.preset.kind)
    over_pcie = facts is not None and not facts.linked and wanted.gpus > 1
    environment = f"\n{_OVER_PCIE}\n" if over_pcie else ""
    setup = (
        _SETUP.format(_folded(install_own_environment(INCLUDED))) if wanted.environment == INCLUDED else ""
    )
    secrets = "\nsecrets: [HF_TOKEN]  # the model is gated\n" if wanted.gated else ""
    return f"""\
# {wanted.model_id} by RL with prime-rl: {how}, on {wanted.gpus} x {wanted.preset.kind}.
# The folder below is relative to where the run is launched.
name: {settings.name}

trainer:
  kind: prime_rl
  steps: {wanted.steps}
  code: {{folder: {json.dumps(folder)}}}  # the only folder that is copied
  prime_rl:
    config: rl.toml
    ref: "{wanted.ref}"{written_for}
{setup}
hardware:
  gpus: [{wanted.preset.kind}]
  count: {wanted.gpus}  # {settings.train_gpus} for training, {settings.infer_gpus} for generation
  spot: prefer
  disk_gib: {settings.disk_gib}

checkpoints:
  every_steps: {SAVE_EVERY}
  keep: 3

# Before the model is downloaded, check that all GPUs exist,
# and that torch and vLLM can be imported.
smoke:
  command: >-
    {_UV}
    python -c "import torch, vllm; assert torch.cuda.device_count() >= {wanted.gpus}"
  timeout_s: 900
{environment}{secrets}
budget:
  usd: {wanted.usd:g}
"""


def trainer(settings: InitChoices) -> str:
    """Return the TOML config with the settings of prime-rl 559b4477."""
    wanted = settings.wanted
    parts = [
        f"""\
# {wanted.model_id} on {settings.train_gpus} + {settings.infer_gpus} GPUs. Not here is what prime-train says on the
# command line: the run's name and folder, the steps, how often is saved.
seq_len = {settings.seq_len}

[model]
name = "{wanted.model_id}"

[deployment]
gpus_per_node = {wanted.gpus}
num_train_gpus = {settings.train_gpus}
num_infer_gpus = {settings.infer_gpus}

[ckpt]
keep_last = {KEPT}  # on the machine; the bucket keeps what the run's config says

[trainer.optim]
type = "adamw"
lr = {settings.learning_rate}
"""
    ]
    if settings.method is Method.LORA:
        parts.append(f"[trainer.model.lora]\nrank = {LORA_RANK}\nalpha = {LORA_ALPHA}\n")
    parts.append(
        f"""\
[orchestrator]
batch_size = {BATCH}
group_size = {GROUP}  # answers to one prompt, compared with one another

[orchestrator.train.sampling]
max_completion_tokens = {settings.completion}  # the rest of seq_len is for the prompt

[[orchestrator.train.source]]
name = "{wanted.environment}"
env.taskset = {{ id = "{wanted.environment}" }}
env.agent.harness = {{ id = "null" }}
env.agent.runtime = {{ type = "subprocess" }}
"""
    )
    if settings.needs_renderer:
        parts.append(
            '[orchestrator.renderer]\nname = "default"  # "auto" supports only some models, by their exact '
            "ids\n"
        )
    parallel = f"tensor_parallel_size = {settings.tensor_parallel}\n" if settings.tensor_parallel > 1 else ""
    parts.append(
        f"[inference.vllm]\nmax_model_len = {settings.seq_len}\n{parallel}gpu_memory_utilization = "
        f"{UTILIZATION}\n"
    )
    return "\n".join(parts)
