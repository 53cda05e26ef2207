"""Valid run specs: no finding on them may ask for a change."""

MIN = """\
name: tiny
trainer: {command: "python train.py --out {checkpoints}", resume: "--resume {checkpoint}", code: {folder: tree}}
budget: {usd: 5}
hardware: {spot: never}
"""
LOCAL = """\
name: local-lm
trainer:
  command: |
    python train.py \\
      --out {checkpoints} \\
      --lr 3e-4
  resume: ""
  code: {folder: tree}
hardware: {provider: local, disk_gib: 5}
checkpoints: {every_steps: 50}
budget: {usd: 1}
"""
LIGHT = """\
name: lightning-vit
trainer:
  kind: torchrun
  workers: 8
  command: train.py fit --ckpt-dir {checkpoints} --trainer.max_steps 90000
  resume: --ckpt_path {checkpoint}/last.ckpt
  steps: 90000
  code:
    repo: https://github.com/acme/vision
    ref: 0b5f2c1e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c
  progress: {kind: regex, pattern: 'step=(?P<step>\\d+) train_loss=(?P<loss>[0-9.]+)'}
setup:
  - curl -LsSf https://astral.sh/uv/0.9.2/install.sh | sh
  - uv sync --frozen
  - pip install flash-attn==2.8.3 --no-build-isolation
  - "python -c 'import torch; print(torch.__version__)'"
checkpoints: {folder: ckpt, pattern: "step-{step}", every_steps: 1000, keep: 4, settled_s: 60}
hardware: {gpus: [A100_80GB, H100_80GB], count: 8, spot: prefer, usd_per_hour_max: 20, disk_gib: 800}
smoke: {command: torchrun --standalone --nproc-per-node 8 train.py fit --trainer.max_steps 4, timeout_s: 1800}
environment:
  NCCL_DEBUG: WARN
  HF_HOME: /workspace/hf
  HF_HUB_ENABLE_HF_TRANSFER: "1"
  AWS_DEFAULT_REGION: us-east-1
  MAX_TOKENS: "4096"
  TOKENIZER: Qwen/Qwen3-4B
secrets: [HF_TOKEN]
budget: {usd: 700, hours: 60}
"""
TITAN = """\
name: titan-llama3-8b
trainer:
  command: >-
    torchrun --nproc_per_node=8 --rdzv_backend c10d --rdzv_endpoint=localhost:0 --local-ranks-filter 0 --role rank --tee 3
    -m torchtitan.train --module llama3 --config llama3_8b --checkpoint.enable --checkpoint.interval 250
    --checkpoint.keep_latest_k 3 --checkpoint.folder checkpoint --training.steps 5000 --no-checkpoint.last_save_model_only
  resume: --checkpoint.load_step {step}
  steps: 5000
  code: {repo: https://github.com/pytorch/torchtitan, ref: b5bcd76c66d2a1f0e9d8c7b6a5f4e3d2c1b0a998}
  progress: {kind: regex, pattern: 'step:\\s+(?P<step>\\d+)\\s+loss:\\s+(?P<loss>[\\d.]+)'}
  stop_s: 30
setup:
  - python3 -m pip install -q -r requirements.txt
  - python scripts/download_hf_assets.py --repo_id meta-llama/Llama-3.1-8B --assets tokenizer
checkpoints: {folder: outputs/checkpoint, pattern: "step-{step}", sentinel: .metadata, every_steps: 250, keep: 2, max_disk_gib: 500}
hardware: {gpus: [H100_80GB], count: 8, spot: prefer, disk_gib: 1000}
smoke: {command: nvidia-smi}
secrets: [HF_TOKEN]
budget: {usd: 400, hours: 24}
"""
VERL = """\
name: verl-gsm8k
trainer:
  command: >-
    python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.rollout.gpu_memory_utilization=0.6
    trainer.save_freq=20 trainer.default_local_dir={checkpoints} trainer.resume_mode=auto trainer.n_gpus_per_node=8 trainer.nnodes=1
    'trainer.logger=["console","wandb"]'
  steps: 435
  resume: trainer.resume_from_path={checkpoint}
  code: {repo: https://github.com/verl-project/verl, ref: 1dda039b9c6aabbccddeeff00112233445566778}
  progress: {kind: regex, pattern: 'step:(?P<step>\\d+) '}
setup:
  - python3 examples/data_preprocess/gsm8k.py --local_save_dir data/gsm8k
verification:
  - {path: data/gsm8k/*.parquet, exactly: 2, size_min: 100 kB}
checkpoints: {pattern: "global_step_{step}", every_steps: 20, keep: 2}
hardware: {provider: prime, gpus: [H100_80GB], count: 8, disk_gib: 1500, spot: prefer}
smoke: {command: "python3 -c 'import verl'"}
secrets: [WANDB_API_KEY]
budget: {usd: 200, hours: 10}
"""

KIND = """\
name: of-a-kind
trainer:
  kind: KIND
  command: COMMAND
  steps: 5000
  code: {repo: https://github.com/acme/train, ref: 0b5f2c1e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c}
checkpoints: {every_steps: 250, keep: 2}
hardware: {gpus: [H100_80GB], count: 1, spot: never, disk_gib: 500}
budget: {usd: 100}
"""
KINDS = {
    "lightning": "train.py --out {checkpoints}",
    "torchtitan": "-m torchtitan.train --module qwen3 --config qwen3_0.6b --checkpoint.interval 250",
    "verl": "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.save_freq=250",
    "areal": "python3 examples/math/gsm8k_rl.py scheduler.type=local recover.freq_steps=250",
    "trm": "pretrain.py arch=trm data_paths=[data] epochs=5000 eval_interval=250",
}
WHOLE = {"min": MIN, "local": LOCAL, "lightning": LIGHT, "titan": TITAN, "verl": VERL} | {
    f"kind-{kind}": KIND.replace("KIND", kind).replace("COMMAND", command) for kind, command in KINDS.items()
}

RIGHT: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "env-refs",
        "command",
        (
            (
                "",
                "  WANDB_MODE: online",
                "  WANDB_MODE: online\n  HF_HUB_TOKEN_FILE: /run/secrets/hf\n  CUDA_VISIBLE_DEVICES: '0'\n"
                "  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True\n"
                "  GIT_SHA: 0b5f2c1e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c\n  KEY_COLUMN: prompt\n  SECRET_SAUCE: "
                "'true'",
            ),
        ),
    ),
    (
        "cmd-token-ref",
        "command",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                "HF_TOKEN=$HF_TOKEN python train.py --config base.yaml --out",
            ),
        ),
    ),
    (
        "setup-login",
        "command",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - python -m pip install -q -r requirements.txt\n  - huggingface-cli login --token "
                "$HF_TOKEN\n"
                "  - wandb login $WANDB_API_KEY\n"
                "  - git clone https://acme:${HF_TOKEN}@huggingface.co/datasets/acme/data data",
            ),
        ),
    ),
    (
        "setup-tag",
        "command",
        (
            (
                "",
                "pip install -q -r requirements.txt",
                "pip install -q git+https://github.com/acme/lib@v1.2.3",
            ),
        ),
    ),
    (
        "setup-sha",
        "command",
        (
            (
                "",
                "pip install -q -r requirements.txt",
                "pip install -q "
                "'git+https://github.com/acme/lib@0b5f2c1e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c#egg=lib'",
            ),
        ),
    ),
    (
        "clone-branch-tag",
        "command",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - git clone --depth 1 --branch v0.5.1 https://github.com/acme/lib lib\n  - cd lib && pip "
                "install -e .",
            ),
        ),
    ),
    (
        "downloads",
        "command",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - hf download allenai/tulu-3-sft-mixture --repo-type dataset --local-dir data\n"
                "  - aws s3 sync s3://acme-data/c4 data/c4 --no-progress",
            ),
        ),
    ),
    (
        "prepare",
        "command",
        (("", "  - python -m pip install -q -r requirements.txt", "  - python prepare.py --out data"),),
    ),
    (
        "cd-in",
        "command",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                "cd src && python train2.py --config other.yaml --out",
            ),
        ),
    ),
    (
        "bash-script",
        "command",
        (
            (
                "",
                "python train.py --config base.yaml --out {checkpoints}",
                "bash -c 'python train.py --out {checkpoints}'",
            ),
        ),
    ),
    ("module", "command", (("", "python train.py --config base.yaml --out", "python -m acme.train --out"),)),
    (
        "uv-run",
        "command",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                "uv run --frozen python train.py --config base.yaml --out",
            ),
        ),
    ),
    (
        "made-config",
        "command",
        (
            ("", "--config base.yaml", "--config made.yaml"),
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - python train.py --dump-config made.yaml",
            ),
        ),
    ),
    (
        "a100-4-torchrun",
        "torchrun",
        (
            ("", "RTX4090_24GB", "A100_40GB"),
            ("", '  NCCL_IB_DISABLE: "1"\n', ""),
        ),
    ),
    (
        "l40s-p2p",
        "torchrun",
        (
            ("", "RTX4090_24GB", "L40S_48GB"),
            ("", 'NCCL_IB_DISABLE: "1"', 'NCCL_P2P_DISABLE: "1"\n  NCCL_IB_DISABLE: "1"'),
        ),
    ),
    (
        "one-4090",
        "torchrun",
        (
            ("", "count: 4", "count: 1"),
            ("", "workers: 4", "workers: 1"),
            ("", "nproc-per-node 4", "nproc-per-node 1"),
            ("", '  NCCL_IB_DISABLE: "1"\n', ""),
        ),
    ),
    (
        "no-spot-noint",
        "command",
        (
            ("", "  every_steps: 100\n", ""),
            ("", "spot: prefer", "spot: never"),
        ),
    ),
    (
        "keep-best",
        "command",
        (("", "  keep: 3", "  keep: 2\n  keep_every_steps: 1000\n  keep_best: 2\n  best_by: loss"),),
    ),
    (
        "small-nosmoke",
        "command",
        (
            ("", "smoke:\n  command: python train.py --config base.yaml --steps 5\n  timeout_s: 600\n", ""),
            ("", "usd: 40", "usd: 10"),
        ),
    ),
    (
        "grpo-server",
        "grpo",
        (
            (
                "tree/grpo.yaml",
                "vllm_mode: colocate\nvllm_gpu_memory_utilization: 0.3",
                "vllm_mode: server\nvllm_server_timeout: 600",
            ),
        ),
    ),
    ("hf-epochs", "hf", (("tree/trl.yaml", "max_steps: 1000", "num_train_epochs: 3"),)),
    (
        "hf-epoch-save",
        "trl.yaml",
        (
            (
                "",
                "save_strategy: steps\nsave_steps: 100\nsave_total_limit: 2\neval_strategy: "
                "steps\neval_steps: 100",
                "save_strategy: epoch\nsave_total_limit: 2\neval_strategy: epoch",
            ),
        ),
    ),
    (
        "hf-noeval",
        "trl.yaml",
        (("", "eval_strategy: steps\neval_steps: 100\nload_best_model_at_end: true\n", ""),),
    ),
    (
        "hf-ratio",
        "trl.yaml",
        (
            ("", "save_steps: 100", "save_steps: 0.1"),
            ("", "eval_steps: 100", "eval_steps: 0.1"),
        ),
    ),
    (
        "hf-multi",
        "trl.yaml",
        (
            ("", "save_steps: 100", "save_steps: 200"),
            ("", "eval_steps: 100", "eval_steps: 50"),
        ),
    ),
    ("hf-report", "trl.yaml", (("", "report_to: wandb", "report_to: [wandb, tensorboard]"),)),
    ("hf-fp16", "trl.yaml", (("", "bf16: true", "fp16: true"),)),
    ("wandb-disabled", "command", (("", "  WANDB_MODE: online", "  WANDB_MODE: disabled"),)),
    (
        "wandb-mode-offline",
        "command",
        (
            ("", "WANDB_MODE: online", "WANDB_MODE: offline"),
            ("", "secrets: [WANDB_API_KEY, HF_TOKEN]", "secrets: [HF_TOKEN]"),
        ),
    ),
    (
        "areal-megatron-cosine",
        "areal.yaml",
        (
            ("", "backend: fsdp:d4", "backend: megatron:d2t2"),
            ("", "lr_scheduler_type: constant", "lr_scheduler_type: cosine"),
        ),
    ),
    (
        "areal-vllm",
        "areal.yaml",
        (
            ("", "backend: sglang:d4", "backend: vllm:d4"),
            (
                "",
                "sglang:\n  attention_backend: fa3\n  mem_fraction_static: 0.8\n",
                "vllm:\n  gpu_memory_utilization: 0.9\n  max_model_len: 8192\n",
            ),
        ),
    ),
    (
        "areal-blackwell",
        "areal",
        (
            ("tree/areal.yaml", "attention_backend: fa3", "attention_backend: triton"),
            ("", "H100_80GB", "B200_180GB"),
        ),
    ),
    (
        "areal-flashinfer-h100",
        "areal",
        (("tree/areal.yaml", "attention_backend: fa3", "attention_backend: flashinfer"),),
    ),
    ("areal-on", "areal.yaml", (("", "mode: auto", "mode: on"),)),
    (
        "areal-secs",
        "areal.yaml",
        (("", "  freq_steps: 20\n  freq_secs: null", "  freq_steps: null\n  freq_secs: 1800"),),
    ),
    (
        "areal-subst",
        "areal.yaml",
        (
            ("", "n_gpus_per_node: 8", "n_gpus_per_node: 8"),
            (
                "",
                "path: Qwen/Qwen2.5-1.5B-Instruct",
                "path: Qwen/Qwen2.5-1.5B-Instruct\n  experiment_name: ${experiment_name}\n  trial_name: "
                "${trial_name}",
            ),
        ),
    ),
    (
        "areal-runA100",
        "areal",
        (
            ("tree/areal.yaml", "attention_backend: fa3", "attention_backend: triton"),
            ("", "H100_80GB", "A100_80GB"),
        ),
    ),
    (
        "trm-1gpu",
        "trm",
        (
            ("", "workers: 4", "workers: 1"),
            ("", "count: 4", "count: 1"),
        ),
    ),
    ("trm-cfg-every", "trm.yaml", (("", "eval_interval: 10000", "eval_interval: 5000"),)),
    (
        "prl-8b",
        "prime_rl",
        (
            ("tree/rl.toml", "Qwen3-4B", "Qwen3-8B"),
            (
                "tree/rl.toml",
                "num_train_gpus = 1\nnum_infer_gpus = 1",
                "num_train_gpus = 4\nnum_infer_gpus = 4",
            ),
            ("", "count: 2", "count: 8"),
            ("", "disk_gib: 300", "disk_gib: 800"),
        ),
    ),
    (
        "prl-lora-4090",
        "prime_rl",
        (
            ("tree/rl.toml", "Qwen3-4B", "Qwen3-0.6B"),
            ("tree/rl.toml", "[trainer.optim]", "[trainer.model.lora]\nrank = 16\n\n[trainer.optim]"),
            ("", "H100_80GB", "RTX4090_24GB"),
            ("", "secrets:", "environment: {NCCL_IB_DISABLE: '1'}\nsecrets:"),
        ),
    ),
    (
        "prl-overrides",
        "prime_rl",
        (("", "    ref: 559b", '    overrides: [--trainer.optim.lr, "2e-6"]\n    ref: 559b'),),
    ),
    ("prl-ondemand", "prime_rl", (("", "spot: prefer", "spot: never"),)),
    (
        "prl-unknownmodel",
        "prime_rl",
        (
            ("tree/rl.toml", "Qwen/Qwen3-4B", "acme/secret-7b"),
            ("tree/rl.toml", "[orchestrator]\n", '[orchestrator]\nrenderer = { name = "default" }\n'),
        ),
    ),
    ("gh200", "command", (("", "A100_80GB", "GH200_96GB"),)),
    ("any-gpu", "command", (("", "  gpus: [A100_80GB]\n", ""),)),
    ("long-command-nosteps", "command", (("", "  steps: 2000\n", ""),)),
    (
        "private-repo",
        "command",
        (
            (
                "",
                "    folder: tree",
                "    repo: git@github.com:acme/train.git\n    ref: 0b5f2c1e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c",
            ),
        ),
    ),
    ("alerts", "command", (("", "budget:", "alerts: {webhook: TEAM_ALERTS}\nbudget:"),)),
    (
        "logrules",
        "command",
        (
            (
                "",
                "  silence_s: 300",
                "  silence_s: 300\n  log_rules:\n    - {pattern: 'loss is nan', stop: true}",
            ),
        ),
    ),
)
