"""Valid run specs and trainers' configs of every kind, in which other tests change one thing."""

COMMAND = """\
# a small run of our own
name: small-lm
trainer:
  kind: command
  command: python train.py --config base.yaml --out {checkpoints}
  steps: 2000
  resume: --resume-step {step}
  progress:
    kind: jsonl
    file: progress.jsonl
  code:
    folder: tree
  stop_s: 120
setup:
  - python -m pip install -q -r requirements.txt
verification:
  - path: data/*.bin
    at_least: 2
    size_min: 1 MB
smoke:
  command: python train.py --config base.yaml --steps 5
  timeout_s: 600
checkpoints:
  folder: checkpoints
  pattern: step_{step}
  sentinel: COMPLETE
  every_steps: 100
  keep: 3
hardware:
  provider: prime
  gpus: [A100_80GB]
  count: 1
  spot: prefer
  disk_gib: 100
health:
  heartbeat_s: 30
  overdue_s: 90
  silence_s: 300
environment:
  TOKENIZERS_PARALLELISM: "false"
  WANDB_MODE: online
secrets: [WANDB_API_KEY, HF_TOKEN]
wandb:
  project: small
budget:
  usd: 40
  hours: 20
"""
TORCHRUN = """\
name: pretrain-350m
trainer:
  kind: torchrun
  workers: 4
  command: train.py --batch-size 8 --save-dir {checkpoints} --save-every 250
  steps: 30000
  resume: --resume {checkpoint}/state.pt
  code:
    folder: tree
  progress:
    kind: regex
    pattern: 'step (?P<step>\\d+) loss (?P<loss>[\\d.]+)'
setup:
  - pip install -q torch==2.7.1
smoke:
  command: torchrun --standalone --nproc-per-node 4 train.py --steps 3
  timeout_s: 900
checkpoints:
  sentinel: state.pt
  files: [state.pt]
  every_steps: 250
  keep: 2
hardware:
  gpus: [RTX4090_24GB]
  count: 4
  spot: prefer
  disk_gib: 120
environment:
  NCCL_IB_DISABLE: "1"
  OMP_NUM_THREADS: "4"
budget:
  usd: 60
  hours: 72
"""
HFT = """\
name: sft-qwen
trainer:
  kind: command
  command: accelerate launch --num_processes 2 sft.py --config trl.yaml --output_dir {checkpoints}
  steps: 1000
  resume: --resume_from_checkpoint {checkpoint}
  code:
    folder: tree
  progress:
    kind: jsonl
    file: progress.jsonl
checkpoints:
  folder: out
  pattern: checkpoint-{step}
  sentinel: trainer_state.json
  files: [trainer_state.json, optimizer.pt, scheduler.pt]
  every_steps: 100
  keep: 2
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 2
  spot: prefer
  disk_gib: 300
environment:
  WANDB_MODE: offline
  WANDB_PROJECT: sft
smoke:
  command: accelerate launch --num_processes 2 sft.py --config trl.yaml --max_steps 2
budget:
  usd: 80
  hours: 24
"""
TRL = """\
model_name_or_path: Qwen/Qwen3-4B
dataset_name: trl-lib/Capybara
output_dir: out
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 2.0e-5
bf16: true
gradient_checkpointing: true
save_strategy: steps
save_steps: 100
save_total_limit: 2
eval_strategy: steps
eval_steps: 100
load_best_model_at_end: true
max_steps: 1000
logging_steps: 10
report_to: wandb
"""
GRPO = """\
model_name_or_path: Qwen/Qwen3-1.7B
output_dir: out
per_device_train_batch_size: 8
num_generations: 8
max_completion_length: 1024
bf16: true
gradient_checkpointing: true
use_vllm: true
vllm_mode: colocate
vllm_gpu_memory_utilization: 0.3
save_strategy: steps
save_steps: 50
save_total_limit: 2
max_steps: 500
"""
AREAL = """\
experiment_name: gsm8k
trial_name: trial0
seed: 1
total_train_epochs: 10
cluster:
  n_nodes: 1
  n_gpus_per_node: 8
  fileroot: /workspace/areal
  name_resolve:
    type: nfs
    nfs_record_root: /workspace/areal/names
scheduler:
  type: local
actor:
  backend: fsdp:d4
  path: Qwen/Qwen2.5-1.5B-Instruct
  dtype: bfloat16
  attn_impl: flash_attention_2
  optimizer:
    type: adam
    lr: 1.7e-5
    lr_scheduler_type: constant
rollout:
  backend: sglang:d4
sglang:
  attention_backend: fa3
  mem_fraction_static: 0.8
saver:
  freq_epochs: 1
  freq_steps: null
  freq_secs: null
recover:
  mode: auto
  freq_epochs: null
  freq_steps: 20
  freq_secs: null
  retries: 0
evaluator:
  freq_epochs: 1
stats_logger:
  wandb:
    mode: online
"""
ARUN = """\
name: gsm8k-areal
trainer:
  command: >-
    python3 gsm8k_rl.py --config areal.yaml scheduler.type=local
    experiment_name=gsm8k trial_name=trial0
  steps: 290
  code:
    folder: tree
  resume: --snapshot {checkpoint}
  progress:
    kind: regex
    pattern: 'Train step (?P<step>\\d+)/'
checkpoints:
  folder: checkpoints
  every_steps: 20
  in_place: true
  keep: 2
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 8
  spot: prefer
  disk_gib: 400
secrets: [WANDB_API_KEY]
smoke:
  command: python3 -c "import areal, sglang"
budget:
  usd: 150
  hours: 12
"""
TRM = """\
name: trm
trainer:
  kind: torchrun
  workers: 4
  command: >-
    pretrain.py arch=trm data_paths="[data/arc1concept-aug-1000]"
    epochs=100000 eval_interval=10000
    +run_name=trm +checkpoint_path={checkpoints} ema=True
  code:
    repo: https://github.com/SamsungSAILMontreal/TinyRecursiveModels
    ref: e7b68717f0a6c4cbb4ce6fbef787b14f42083bd9
  progress:
    kind: regex
    pattern: '(?P<step>\\d+)/\\d+ \\['
  resume: +load_checkpoint={checkpoint}
setup:
  - pip install -q -r requirements.txt
  - python -m dataset.build_arc_dataset --output-dir data/arc1concept-aug-1000 --subsets training evaluation
verification:
  - path: data/arc1concept-aug-1000/*/dataset.json
    exactly: 2
smoke:
  command: python -c "import adam_atan2"
checkpoints:
  folder: checkpoints
  pattern: step_{step}
hardware:
  gpus: [H100_80GB]
  count: 4
  spot: never
  disk_gib: 100
environment:
  WANDB_MODE: offline
budget:
  usd: 800
  hours: 80
"""
PRL = """\
name: reverse
trainer:
  kind: prime_rl
  steps: 200
  prime_rl:
    config: rl.toml
    ref: 559b4477000000000000000000000000000000aa
  code:
    folder: tree
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 2
  spot: prefer
  disk_gib: 300
checkpoints:
  every_steps: 20
  keep: 2
smoke:
  command: python -c "import torch"
secrets: [WANDB_API_KEY]
wandb:
  project: reverse
budget:
  usd: 50
  hours: 12
"""
TOML = """\
seq_len = 4096

[model]
name = "Qwen/Qwen3-4B"

[deployment]
num_train_gpus = 1
num_infer_gpus = 1

[ckpt]
keep_last = 2

[trainer.optim]
type = "adamw"
lr = 1e-6

[orchestrator]
batch_size = 128
group_size = 16

[orchestrator.train.sampling]
max_completion_tokens = 2048

[[orchestrator.train.source]]
name = "reverse-text"
env.taskset = { id = "reverse-text" }
env.agent.harness = { id = "null" }
env.agent.runtime = { type = "subprocess" }

[inference.vllm]
max_model_len = 4096
gpu_memory_utilization = 0.85
"""
TRMCFG = """\
defaults:
  - arch: trm
  - _self_
hydra:
  output_subdir: null
data_paths: ['data/arc-aug-1000']
evaluators:
  - name: arc@ARC
global_batch_size: 768
epochs: 100000
eval_interval: 10000
checkpoint_every_eval: True
lr: 1e-4
lr_min_ratio: 1.0
lr_warmup_steps: 2000
beta1: 0.9
beta2: 0.95
weight_decay: 0.1
puzzle_emb_weight_decay: 0.1
puzzle_emb_lr: 1e-2
seed: 0
min_eval_interval: 0
ema: False
"""
FILES = {
    "tree/train.py": "print()\n",
    "tree/base.yaml": "lr: 1\n",
    "tree/requirements.txt": "torch==2.7.1\n",
    "tree/sft.py": "print()\n",
    "tree/grpo.py": "print()\n",
    "tree/gsm8k_rl.py": "print()\n",
    "tree/trl.yaml": TRL,
    "tree/grpo.yaml": GRPO,
    "tree/areal.yaml": AREAL,
    "tree/rl.toml": TOML,
    "tree/pretrain.py": "print()\n",
}
GRUN = (
    HFT.replace("sft-qwen", "grpo-qwen")
    .replace("sft.py --config trl.yaml", "grpo.py --config grpo.yaml")
    .replace("steps: 1000", "steps: 500")
    .replace("every_steps: 100", "every_steps: 50")
    .replace("WANDB_PROJECT: sft", "WANDB_PROJECT: grpo")
)
BASES = {
    "command": COMMAND,
    "torchrun": TORCHRUN,
    "hf": HFT,
    "grpo": GRUN,
    "areal": ARUN,
    "trm": TRM,
    "prime_rl": PRL,
    "trl.yaml": TRL,
    "grpo.yaml": GRPO,
    "areal.yaml": AREAL,
    "trm.yaml": TRMCFG,
}
