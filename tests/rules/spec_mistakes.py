"""Run specs with one mistake each: the expected code, and the line at which it must be reported."""

from dataclasses import dataclass

# Made up, and put together here: nobody who looks for secrets need stop at this file.
HF = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz12345678"
GH = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GHF = (
    "github_pat_" + "11ABCDEFG0a1B2c3D4e5F6_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D"
)
AWSID = "AKIA" + "J7QX2M5N8P4R6T3V"
AWSSEC = "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYzK3Qd9LmT2s"
SLACK = "xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx"
HOOK = "https://hooks.slack.com/services/" + "T01ABCDEF/B02GHIJKL/" + "a1B2c3D4e5F6g7H8i9J0k1L2"
OPENAI = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4"
ANTH = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4"
PRIME = "pit_" + "4f8a2b1c9d3e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e"
WB = "7c1d9e3f5a2b8c4d6e0f1a3b5c7d9e2f4a6b8c0d"
WB1 = "wandb_v1_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4i5J6"


@dataclass(frozen=True)
class Broken:
    """A change of the base: in each file ("" is the config itself) an old text becomes a new one; `at` is the
    line, without its indentation.
    """

    name: str
    base: str
    code: str
    at: str
    changes: tuple[tuple[str, str, str], ...]


BROKEN = (
    Broken("unknown-top", "command", "PT010", "hardwares:", (("", "hardware:", "hardwares:"),)),
    Broken("unknown-key-trainer", "command", "PT010", "stop: 120", (("", "  stop_s: 120", "  stop: 120"),)),
    Broken(
        "typo-command",
        "command",
        "PT010",
        "comand: python train.py --config base.yaml --out {checkpoints}",
        (("", "  command: python train", "  comand: python train"),),
    ),
    Broken("typo-budget", "command", "PT010", "hour: 20", (("", "  hours: 20", "  hour: 20"),)),
    Broken("typo-keep", "command", "PT010", "keep_last: 3", (("", "  keep: 3", "  keep_last: 3"),)),
    Broken("typo-gpu", "command", "PT010", "gpu: [A100_80GB]", (("", "  gpus: [A100", "  gpu: [A100"),)),
    Broken("wrongtype-steps", "command", "PT012", "steps: many", (("", "steps: 2000", "steps: many"),)),
    Broken("wrongtype-gpus", "command", "PT012", "gpus: A100_80GB", (("", "[A100_80GB]", "A100_80GB"),)),
    Broken("wrongtype-env", "command", "PT014", "TOKENIZERS_PARALLELISM: false", (("", '"false"', "false"),)),
    Broken(
        "wrongtype-env-num",
        "torchrun",
        "PT014",
        "OMP_NUM_THREADS: 4",
        (("", 'OMP_NUM_THREADS: "4"', "OMP_NUM_THREADS: 4"),),
    ),
    Broken(
        "wrongtype-setup",
        "command",
        "PT012",
        "setup: python -m pip install -q -r requirements.txt",
        (
            (
                "",
                "setup:\n  - python -m pip install -q -r requirements.txt",
                "setup: python -m pip install -q -r requirements.txt",
            ),
        ),
    ),
    Broken(
        "wrongtype-secrets",
        "command",
        "PT012",
        "secrets: WANDB_API_KEY",
        (("", "secrets: [WANDB_API_KEY, HF_TOKEN]", "secrets: WANDB_API_KEY"),),
    ),
    Broken(
        "wrongunit-disk",
        "command",
        "PT013",
        "disk_gib: 100 gigs",
        (("", "disk_gib: 100", "disk_gib: 100 gigs"),),
    ),
    Broken(
        "wrongunit-size",
        "command",
        "PT013",
        "size_min: 1 megs",
        (("", "size_min: 1 MB", "size_min: 1 megs"),),
    ),
    Broken(
        "wrongunit-time",
        "command",
        "PT013",
        "timeout_s: 10 moments",
        (("", "timeout_s: 600", "timeout_s: 10 moments"),),
    ),
    Broken(
        "wrongunit-hours", "command", "PT013", "hours: 20 o'clock", (("", "hours: 20", "hours: 20 o'clock"),)
    ),
    Broken("neg-budget", "command", "PT013", "usd: -40", (("", "usd: 40", "usd: -40"),)),
    Broken("zero-keep", "command", "PT013", "keep: 0", (("", "keep: 3", "keep: 0"),)),
    Broken(
        "no-budget", "command", "PT011", "name: small-lm", (("", "budget:\n  usd: 40\n  hours: 20\n", ""),)
    ),
    Broken("no-usd", "command", "PT011", "budget:", (("", "  usd: 40\n", ""),)),
    Broken("no-name", "command", "PT011", "trainer:", (("", "name: small-lm\n", ""),)),
    Broken(
        "bad-name-caps", "command", "PT013", "name: Small_LM", (("", "name: small-lm", "name: Small_LM"),)
    ),
    Broken(
        "bad-name-long",
        "command",
        "PT013",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        (("", "name: small-lm", "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),),
    ),
    Broken("bad-spot", "command", "PT013", "spot: always", (("", "spot: prefer", "spot: always"),)),
    Broken("bad-kind", "command", "PT013", "kind: accelerate", (("", "kind: command", "kind: accelerate"),)),
    Broken("bad-provider", "command", "PT013", "provider: aws", (("", "provider: prime", "provider: aws"),)),
    Broken("dup-key", "command", "PT006", "count: 2", (("", "  count: 1\n", "  count: 1\n  count: 2\n"),)),
    Broken("yaml-tab", "command", "PT004", "count: 1", (("", "  count: 1", "\tcount: 1"),)),
    Broken("yaml-quote", "command", "PT004", "", (("", "project: small", "project: 'small"),)),
    Broken(
        "placeholder",
        "command",
        "PT013",
        "resume: --resume-step {stp}",
        (("", "--resume-step {step}", "--resume-step {stp}"),),
    ),
    Broken(
        "placeholder-command",
        "command",
        "PT013",
        "command: python train.py --config base.yaml --out {checkpoint}",
        (("", "--out {checkpoints}", "--out {checkpoint}"),),
    ),
    Broken(
        "pattern-unknown", "command", "PT013", "pattern: step_{n}", (("", "step_{step}\n", "step_{n}\n"),)
    ),
    Broken(
        "regex-bad",
        "torchrun",
        "PT013",
        "pattern: 'step (?P<step>\\d+ loss (?P<loss>[\\d.]+)'",
        (("", "(?P<step>\\d+) loss", "(?P<step>\\d+ loss"),),
    ),
    Broken(
        "regex-nostep",
        "torchrun",
        "PT013",
        "pattern: 'step (\\d+) loss (?P<loss>[\\d.]+)'",
        (("", "(?P<step>\\d+) loss", "(\\d+) loss"),),
    ),
    Broken("progress-kind", "command", "PT013", "kind: json", (("", "kind: jsonl", "kind: json"),)),
    Broken("order-health", "command", "PT013", "overdue_s: 400", (("", "overdue_s: 90", "overdue_s: 400"),)),
    Broken(
        "env-and-secret",
        "command",
        "PT013",
        "HF_TOKEN: $HF_TOKEN",
        (("", "  WANDB_MODE: online", "  WANDB_MODE: online\n  HF_TOKEN: $HF_TOKEN"),),
    ),
    Broken(
        "env-badname",
        "command",
        "PT013",
        "MY-VAR: a",
        (("", "  WANDB_MODE: online", "  WANDB_MODE: online\n  MY-VAR: a"),),
    ),
    Broken(
        "smoke-empty",
        "command",
        "PT013",
        "command: ''",
        (("", "  command: python train.py --config base.yaml --steps 5", "  command: ''"),),
    ),
    Broken("ref-no-repo", "command", "PT013", "ref: main", (("", "    folder: tree", "    ref: main"),)),
    Broken(
        "escape-ckpt",
        "command",
        "PT013",
        "folder: ../checkpoints",
        (("", "folder: checkpoints", "folder: ../checkpoints"),),
    ),
    Broken(
        "abs-ckpt",
        "command",
        "PT013",
        "folder: /workspace/checkpoints",
        (("", "folder: checkpoints", "folder: /workspace/checkpoints"),),
    ),
    Broken(
        "escape-progress",
        "command",
        "PT013",
        "file: ../progress.jsonl",
        (("", "file: progress.jsonl", "file: ../progress.jsonl"),),
    ),
    Broken(
        "escape-verify",
        "command",
        "PT013",
        "- path: /data/*.bin",
        (("", "path: data/*.bin", "path: /data/*.bin"),),
    ),
    Broken(
        "escape-sentinel",
        "command",
        "PT013",
        "sentinel: ../COMPLETE",
        (("", "sentinel: COMPLETE", "sentinel: ../COMPLETE"),),
    ),
    Broken(
        "escape-prl",
        "prime_rl",
        "PT013",
        "config: ../rl.toml",
        (("", "config: rl.toml", "config: ../rl.toml"),),
    ),
    Broken("missing-tree", "command", "PT040", "folder: treee", (("", "folder: tree", "folder: treee"),)),
    Broken(
        "missing-toml",
        "prime_rl",
        "PT031",
        "config: rl2.toml",
        (("", "config: rl.toml", "config: rl2.toml"),),
    ),
    Broken(
        "missing-script",
        "command",
        "PT041",
        "command: python trian.py --config base.yaml --out {checkpoints}",
        (("", "python train.py --config base.yaml --out", "python trian.py --config base.yaml --out"),),
    ),
    Broken(
        "missing-script-t",
        "torchrun",
        "PT041",
        "command: training.py --batch-size 8 --save-dir {checkpoints} --save-every 250",
        (("", "command: train.py", "command: training.py"),),
    ),
    Broken(
        "missing-req",
        "command",
        "PT041",
        "- python -m pip install -q -r requirement.txt",
        (("", "-r requirements.txt", "-r requirement.txt"),),
    ),
    Broken(
        "missing-hfcfg",
        "hf",
        "PT041",
        "command: accelerate launch --num_processes 2 sft.py --config trll.yaml --output_dir {checkpoints}",
        (("", "sft.py --config trl.yaml --output", "sft.py --config trll.yaml --output"),),
    ),
    Broken(
        "secret-hf-env",
        "command",
        "PT020",
        f"HUGGING_FACE_HUB_TOKEN: {HF}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  HUGGING_FACE_HUB_TOKEN: {HF}"),),
    ),
    Broken(
        "secret-wandb-env",
        "hf",
        "PT020",
        f"WANDB_API_KEY: {WB}",
        (("", "  WANDB_PROJECT: sft", f"  WANDB_PROJECT: sft\n  WANDB_API_KEY: {WB}"),),
    ),
    Broken(
        "secret-wandb1-env",
        "hf",
        "PT020",
        f"WANDB_API_KEY: {WB1}",
        (("", "  WANDB_PROJECT: sft", f"  WANDB_PROJECT: sft\n  WANDB_API_KEY: {WB1}"),),
    ),
    Broken(
        "secret-aws-id",
        "command",
        "PT020",
        f"AWS_ACCESS_KEY_ID: {AWSID}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  AWS_ACCESS_KEY_ID: {AWSID}"),),
    ),
    Broken(
        "secret-aws-secret",
        "command",
        "PT020",
        f"AWS_SECRET_ACCESS_KEY: {AWSSEC}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  AWS_SECRET_ACCESS_KEY: {AWSSEC}"),),
    ),
    Broken(
        "secret-gh-setup",
        "command",
        "PT020",
        f"- git clone https://{GH}@github.com/acme/data data",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - python -m pip install -q -r requirements.txt\n  - git clone "
                f"https://{GH}@github.com/acme/data data",
            ),
        ),
    ),
    Broken(
        "secret-ghpat-cmd",
        "command",
        "PT020",
        f"command: GH={GHF} python train.py --config base.yaml --out {{checkpoints}}",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                f"GH={GHF} python train.py --config base.yaml --out",
            ),
        ),
    ),
    Broken(
        "secret-slack",
        "command",
        "PT020",
        f"SLACK_TOKEN: {SLACK}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  SLACK_TOKEN: {SLACK}"),),
    ),
    Broken(
        "secret-hook",
        "command",
        "PT020",
        f"NOTIFY: {HOOK}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  NOTIFY: {HOOK}"),),
    ),
    Broken(
        "secret-openai",
        "command",
        "PT020",
        f"OPENAI_API_KEY: {OPENAI}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  OPENAI_API_KEY: {OPENAI}"),),
    ),
    Broken(
        "secret-anth",
        "command",
        "PT020",
        f"command: env ANTHROPIC_API_KEY={ANTH} python train.py --config base.yaml --out {{checkpoints}}",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                f"env ANTHROPIC_API_KEY={ANTH} python train.py --config base.yaml --out",
            ),
        ),
    ),
    Broken(
        "secret-prime",
        "command",
        "PT020",
        f"PRIME_API_KEY: {PRIME}",
        (("", "  WANDB_MODE: online", f"  WANDB_MODE: online\n  PRIME_API_KEY: {PRIME}"),),
    ),
    Broken(
        "secret-hf-login",
        "command",
        "PT020",
        f"- huggingface-cli login --token {HF}",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                f"  - python -m pip install -q -r requirements.txt\n  - huggingface-cli login --token {HF}",
            ),
        ),
    ),
    Broken(
        "secret-wandb-login",
        "hf",
        "PT020",
        f"- wandb login {WB}",
        (("", "smoke:", f"setup:\n  - wandb login {WB}\nsmoke:"),),
    ),
    Broken(
        "secret-password",
        "command",
        "PT020",
        "DB_PASSWORD: q8Zr2vLxT9wB4nKe",
        (("", "  WANDB_MODE: online", "  WANDB_MODE: online\n  DB_PASSWORD: q8Zr2vLxT9wB4nKe"),),
    ),
    Broken(
        "secret-toml",
        "prime_rl",
        "PT020",
        f'env.taskset = {{ id = "reverse-text", args = {{ api_key = "{OPENAI}" }} }}',
        (
            (
                "tree/rl.toml",
                'id = "reverse-text" }\nenv.agent.harness',
                f'id = "reverse-text", args = {{ api_key = "{OPENAI}" }} }}\nenv.agent.harness',
            ),
        ),
    ),
    Broken(
        "secret-areal",
        "areal.yaml",
        "TR407",
        f"api_key: {WB}",
        (("", "    mode: online", f"    mode: online\n    api_key: {WB}"),),
    ),
    Broken(
        "secret-alert",
        "command",
        "PT020",
        f"webhook: {HOOK}",
        (("", "budget:", f"alerts:\n  webhook: {HOOK}\nbudget:"),),
    ),
    Broken(
        "secret-multiline",
        "command",
        "PT020",
        f"HF_TOKEN={HF}",
        (
            (
                "",
                "  command: python train.py --config base.yaml --out {checkpoints}",
                f"  command: >-\n    env FOO=1\n    HF_TOKEN={HF}\n    python train.py --config base.yaml "
                f"--out {{checkpoints}}",
            ),
        ),
    ),
    Broken(
        "secret-smoke",
        "command",
        "PT020",
        f"command: HF_TOKEN={HF} python train.py --config base.yaml --steps 5",
        (
            (
                "",
                "  command: python train.py --config base.yaml --steps 5",
                f"  command: HF_TOKEN={HF} python train.py --config base.yaml --steps 5",
            ),
        ),
    ),
    Broken(
        "repo-noref",
        "command",
        "PT033",
        "repo: https://github.com/acme/train",
        (("", "    folder: tree", "    repo: https://github.com/acme/train"),),
    ),
    Broken(
        "repo-branch",
        "command",
        "PT033",
        "ref: main",
        (("", "    folder: tree", "    repo: https://github.com/acme/train\n    ref: main"),),
    ),
    Broken(
        "prl-ref-short",
        "prime_rl",
        "PT013",
        "ref: 559b447",
        (("", "ref: 559b4477000000000000000000000000000000aa", "ref: 559b447"),),
    ),
    Broken(
        "prl-ref-branch",
        "prime_rl",
        "PT013",
        "ref: main",
        (("", "ref: 559b4477000000000000000000000000000000aa", "ref: main"),),
    ),
    Broken(
        "setup-unpinned",
        "command",
        "PT035",
        "- python -m pip install -q git+https://github.com/acme/lib",
        (("", "pip install -q -r requirements.txt", "pip install -q git+https://github.com/acme/lib"),),
    ),
    Broken(
        "setup-unpinned-branch",
        "command",
        "PT035",
        "- python -m pip install -q git+https://github.com/acme/lib@main",
        (("", "pip install -q -r requirements.txt", "pip install -q git+https://github.com/acme/lib@main"),),
    ),
    Broken("gpu-typo", "command", "HW101", "gpus: [A100_80]", (("", "A100_80GB", "A100_80"),)),
    Broken("gpu-none", "command", "HW101", "gpus: [H300_80GB]", (("", "A100_80GB", "H300_80GB"),)),
    Broken("gpu-nomem", "command", "HW102", "gpus: [H100]", (("", "A100_80GB", "H100"),)),
    Broken("gpu-lower", "command", "HW101", "gpus: [a100-80gb]", (("", "A100_80GB", "a100-80gb"),)),
    Broken("count-3", "command", "PT013", "count: 3", (("", "count: 1", "count: 3"),)),
    Broken("count-0", "command", "PT013", "count: 0", (("", "count: 1", "count: 0"),)),
    Broken("count-32", "command", "PT013", "count: 32", (("", "count: 1", "count: 32"),)),
    Broken("workers-more", "torchrun", "HW103", "workers: 8", (("", "workers: 4", "workers: 8"),)),
    Broken("disk-small", "prime_rl", "HW105", "disk_gib: 60", (("", "disk_gib: 300", "disk_gib: 60"),)),
    Broken(
        "disk-keep",
        "prime_rl",
        "HW105",
        "disk_gib: 300",
        (("tree/rl.toml", "keep_last = 2", "keep_last = 20"),),
    ),
    Broken(
        "prl-count",
        "prime_rl",
        "PR321",
        "num_train_gpus = 2",
        (("tree/rl.toml", "num_train_gpus = 1", "num_train_gpus = 2"),),
    ),
    Broken(
        "mem-14b",
        "prime_rl",
        "ME201",
        "gpus: [H100_80GB]",
        (
            ("tree/rl.toml", "Qwen3-4B", "Qwen3-14B"),
            ("", "disk_gib: 300", "disk_gib: 2000"),
        ),
    ),
    Broken("mem-4090", "prime_rl", "ME201", "gpus: [RTX4090_24GB]", (("", "H100_80GB", "RTX4090_24GB"),)),
    Broken(
        "mem-util-low",
        "prime_rl",
        "ME203",
        "gpu_memory_utilization = 0.08",
        (("tree/rl.toml", "utilization = 0.85", "utilization = 0.08"),),
    ),
    Broken(
        "mem-util-over",
        "prime_rl",
        "PR317",
        "gpu_memory_utilization = 1.2",
        (("tree/rl.toml", "utilization = 0.85", "utilization = 1.2"),),
    ),
    Broken(
        "grpo-util",
        "grpo.yaml",
        "TR428",
        "vllm_gpu_memory_utilization: 0.95",
        (("", "utilization: 0.3", "utilization: 0.95"),),
    ),
    Broken(
        "grpo-util-run",
        "grpo",
        "TR428",
        "vllm_gpu_memory_utilization: 0.95",
        (("tree/grpo.yaml", "utilization: 0.3", "utilization: 0.95"),),
    ),
    Broken(
        "areal-memfrac",
        "areal.yaml",
        "TR417",
        "mem_fraction_static: 1.8",
        (("", "mem_fraction_static: 0.8", "mem_fraction_static: 1.8"),),
    ),
    Broken("areal-mode-fault", "areal.yaml", "TR401", "mode: fault", (("", "mode: auto", "mode: fault"),)),
    Broken("areal-mode-resume", "areal.yaml", "TR401", "mode: resume", (("", "mode: auto", "mode: resume"),)),
    Broken(
        "areal-mode-disabled",
        "areal.yaml",
        "TR402",
        "mode: disabled",
        (("", "mode: auto", "mode: disabled"),),
    ),
    Broken(
        "areal-relroot",
        "areal.yaml",
        "TR414",
        "fileroot: experiments",
        (("", "fileroot: /workspace/areal", "fileroot: experiments"),),
    ),
    Broken(
        "areal-wandbmode",
        "areal.yaml",
        "TR408",
        "mode: onlinee",
        (("", "    mode: online", "    mode: onlinee"),),
    ),
    Broken(
        "areal-attn",
        "areal.yaml",
        "TR415",
        "attn_impl: flash_attn_2",
        (("", "flash_attention_2", "flash_attn_2"),),
    ),
    Broken(
        "areal-cosine",
        "areal.yaml",
        "TR406",
        "lr_scheduler_type: cosine",
        (("", "lr_scheduler_type: constant", "lr_scheduler_type: cosine"),),
    ),
    Broken(
        "areal-freq", "areal.yaml", "TR403", "recover:", (("", "  freq_steps: 20", "  freq_steps: null"),)
    ),
    Broken("areal-backend", "areal.yaml", "TR410", "backend: d4", (("", "backend: fsdp:d4", "backend: d4"),)),
    Broken(
        "areal-run-mode",
        "areal",
        "TR402",
        "mode: disabled",
        (("tree/areal.yaml", "mode: auto", "mode: disabled"),),
    ),
    Broken(
        "areal-run-override",
        "areal",
        "TR402",
        "python3 gsm8k_rl.py --config areal.yaml scheduler.type=local recover.mode=disabled",
        (("", "scheduler.type=local", "scheduler.type=local recover.mode=disabled"),),
    ),
    Broken(
        "areal-fa3-blackwell", "areal", "TR411", "attention_backend: fa3", (("", "H100_80GB", "B200_180GB"),)
    ),
    Broken("areal-fa3-a100", "areal", "TR411", "attention_backend: fa3", (("", "H100_80GB", "A100_80GB"),)),
    Broken("areal-gpus", "areal", "TR416", "count: 4", (("", "count: 8", "count: 4"),)),
    Broken(
        "hf-save-no",
        "trl.yaml",
        "TR421",
        "save_strategy: 'no'",
        (
            (
                "",
                "save_strategy: steps\nsave_steps: 100\nsave_total_limit: 2\neval_strategy: "
                "steps\neval_steps: 100\n"
                "load_best_model_at_end: true",
                "save_strategy: 'no'",
            ),
        ),
    ),
    Broken(
        "hf-saveonly",
        "trl.yaml",
        "TR422",
        "save_only_model: true",
        (("", "save_total_limit: 2", "save_total_limit: 2\nsave_only_model: true"),),
    ),
    Broken(
        "hf-best-mismatch",
        "trl.yaml",
        "TR424",
        "load_best_model_at_end: true",
        (("", "eval_strategy: steps", "eval_strategy: epoch"),),
    ),
    Broken(
        "hf-best-multiple",
        "trl.yaml",
        "TR435",
        "save_steps: 100",
        (("", "eval_steps: 100", "eval_steps: 30"),),
    ),
    Broken(
        "hf-best-noeval",
        "trl.yaml",
        "TR424",
        "load_best_model_at_end: true",
        (("", "eval_strategy: steps\neval_steps: 100", "eval_strategy: 'no'"),),
    ),
    Broken(
        "hf-bf16-fp16", "trl.yaml", "TR425", "fp16: true", (("", "bf16: true", "bf16: true\nfp16: true"),)
    ),
    Broken(
        "hf-limit1",
        "trl.yaml",
        "TR426",
        "save_total_limit: 1",
        (
            ("", "save_total_limit: 2", "save_total_limit: 1"),
            ("", "load_best_model_at_end: true", "load_best_model_at_end: false"),
        ),
    ),
    Broken(
        "hf-limit1-best",
        "trl.yaml",
        "TR438",
        "save_total_limit: 1",
        (("", "save_total_limit: 2", "save_total_limit: 1"),),
    ),
    Broken(
        "hf-limit1-best-flags",
        "command",
        "TR439",
        "command: python train.py --save_total_limit 1 --load_best_model_at_end true --out {checkpoints}",
        (
            (
                "",
                "train.py --config base.yaml --out",
                "train.py --save_total_limit 1 --load_best_model_at_end true --out",
            ),
        ),
    ),
    Broken(
        "hf-evaluation_strategy",
        "trl.yaml",
        "TR431",
        "evaluation_strategy: steps",
        (("", "eval_strategy: steps", "evaluation_strategy: steps"),),
    ),
    Broken(
        "hf-trlcli",
        "hf",
        "TR429",
        "command: trl sft --config trl.yaml --output_dir {checkpoints}",
        (
            (
                "",
                "accelerate launch --num_processes 2 sft.py --config trl.yaml --output_dir",
                "trl sft --config trl.yaml --output_dir",
            ),
        ),
    ),
    Broken(
        "hf-save-beyond",
        "trl.yaml",
        "TR423",
        "save_steps: 5000",
        (("", "save_steps: 100", "save_steps: 5000"),),
    ),
    Broken(
        "hf-gen-div",
        "grpo.yaml",
        "TR430",
        "num_generations: 11",
        (("", "num_generations: 8", "num_generations: 11"),),
    ),
    Broken(
        "wandb-disabled-false",
        "command",
        "TR451",
        "WANDB_DISABLED: 'false'",
        (("", "  WANDB_MODE: online", "  WANDB_DISABLED: 'false'"),),
    ),
    Broken(
        "wandb-mode-bad",
        "command",
        "PT014",
        "WANDB_MODE: on",
        (("", "  WANDB_MODE: online", "  WANDB_MODE: on"),),
    ),
    Broken(
        "wandb-nokey",
        "command",
        "PT037",
        "wandb:",
        (("", "secrets: [WANDB_API_KEY, HF_TOKEN]", "secrets: [HF_TOKEN]"),),
    ),
    Broken(
        "nccl-ib-pcie",
        "torchrun",
        "TR455",
        "gpus: [RTX3090_24GB]",
        (
            ("", "RTX4090_24GB", "RTX3090_24GB"),
            ("", '  NCCL_IB_DISABLE: "1"\n', ""),
        ),
    ),
    Broken(
        "nccl-ib-on",
        "torchrun",
        "TR457",
        'NCCL_IB_DISABLE: "0"',
        (("", 'NCCL_IB_DISABLE: "1"', 'NCCL_IB_DISABLE: "0"'),),
    ),
    Broken(
        "nccl-ib-hca",
        "torchrun",
        "TR457",
        "NCCL_IB_HCA: mlx5",
        (("", 'NCCL_IB_DISABLE: "1"', "NCCL_IB_HCA: mlx5"),),
    ),
    Broken(
        "torchrun-twice",
        "torchrun",
        "TR456",
        "command: torchrun --nproc-per-node 4 train.py --batch-size 8 --save-dir {checkpoints} --save-every "
        "250",
        (("", "command: train.py", "command: torchrun --nproc-per-node 4 train.py"),),
    ),
    Broken(
        "torchrun-python",
        "torchrun",
        "TR456",
        "command: python train.py --batch-size 8 --save-dir {checkpoints} --save-every 250",
        (("", "command: train.py", "command: python train.py"),),
    ),
    Broken(
        "torchrun-nproc",
        "command",
        "HW103",
        "command: torchrun --nproc-per-node 4 train.py --config base.yaml --out {checkpoints}",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                "torchrun --nproc-per-node 4 train.py --config base.yaml --out",
            ),
        ),
    ),
    Broken(
        "accel-nproc",
        "hf",
        "HW103",
        "command: accelerate launch --num_processes 4 sft.py --config trl.yaml --output_dir {checkpoints}",
        (
            (
                "",
                "--num_processes 2 sft.py --config trl.yaml --output",
                "--num_processes 4 sft.py --config trl.yaml --output",
            ),
        ),
    ),
    Broken(
        "torchrun-maxrestarts",
        "command",
        "TR453",
        "command: torchrun --standalone --max-restarts 3 train.py --config base.yaml --out {checkpoints}",
        (
            (
                "",
                "python train.py --config base.yaml --out",
                "torchrun --standalone --max-restarts 3 train.py --config base.yaml --out",
            ),
        ),
    ),
    Broken(
        "trm-interval",
        "trm.yaml",
        "TR441",
        "eval_interval: 30000",
        (("", "eval_interval: 10000", "eval_interval: 30000"),),
    ),
    Broken(
        "trm-interval-cmd",
        "trm",
        "TR441",
        "epochs=100000 eval_interval=30000",
        (("", "eval_interval=10000", "eval_interval=30000"),),
    ),
    Broken(
        "trm-plain",
        "trm",
        "TR443",
        'python pretrain.py arch=trm data_paths="[data/arc1concept-aug-1000]"',
        (
            ("", "  kind: torchrun\n  workers: 4\n", ""),
            ("", "    pretrain.py arch", "    python pretrain.py arch"),
        ),
    ),
    Broken(
        "trm-noplus",
        "trm",
        "TR444",
        "+run_name=trm checkpoint_path={checkpoints} ema=True",
        (("", "+checkpoint_path", "checkpoint_path"),),
    ),
    Broken(
        "trm-norunname",
        "trm",
        "TR445",
        'pretrain.py arch=trm data_paths="[data/arc1concept-aug-1000]"',
        (("", "+run_name=trm +checkpoint_path={checkpoints} ", ""),),
    ),
    Broken("trm-spot", "trm", "TR446", "spot: prefer", (("", "spot: never", "spot: prefer"),)),
    Broken(
        "trm-every",
        "trm.yaml",
        "TR442",
        "checkpoint_every_eval: False",
        (("", "checkpoint_every_eval: True", "checkpoint_every_eval: False"),),
    ),
    Broken(
        "trm-verify",
        "trm",
        "RE504",
        "- python -m dataset.build_arc_dataset --output-dir data/arc1concept-aug-1000 --subsets training "
        "evaluation",
        (("", "verification:\n  - path: data/arc1concept-aug-1000/*/dataset.json\n    exactly: 2\n", ""),),
    ),
    Broken("res-nointerval", "command", "RE508", "checkpoints:", (("", "  every_steps: 100\n", ""),)),
    Broken(
        "res-unsaid",
        "command",
        "RE510",
        "command: python train.py --config base.yaml",
        (
            ("", " --out {checkpoints}", ""),
            (
                "",
                "checkpoints:\n  folder: checkpoints\n  pattern: step_{step}\n  sentinel: COMPLETE\n  "
                "every_steps: 100\n  keep: 3\n",
                "",
            ),
            ("", "spot: prefer", "spot: never"),
        ),
    ),
    Broken(
        "res-beyond",
        "command",
        "RE502",
        "every_steps: 5000",
        (("", "every_steps: 100", "every_steps: 5000"),),
    ),
    Broken("res-prl-nointerval", "prime_rl", "PR336", "[ckpt]", (("", "  every_steps: 20\n", ""),)),
    Broken(
        "res-nohours",
        "command",
        "RE505",
        "usd: 400",
        (
            ("", "  usd: 40", "  usd: 400"),
            ("", "smoke:\n  command: python train.py --config base.yaml --steps 5\n  timeout_s: 600\n", ""),
        ),
    ),
    Broken(
        "res-upload",
        "prime_rl",
        "RE503",
        "upload_mb_per_s_max: 5",
        (("", "  keep: 2", "  keep: 2\n  upload_mb_per_s_max: 5"),),
    ),
    Broken(
        "res-nodataset",
        "command",
        "RE504",
        "- python prepare_dataset.py --out data",
        (
            ("", "verification:\n  - path: data/*.bin\n    at_least: 2\n    size_min: 1 MB\n", ""),
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - python -m pip install -q -r requirements.txt\n  - python prepare_dataset.py --out data",
            ),
        ),
    ),
    Broken(
        "res-smoke-timeout",
        "command",
        "PT013",
        "timeout_s: 6000000",
        (("", "timeout_s: 600", "timeout_s: 6000000"),),
    ),
    Broken(
        "res-steps-smoke",
        "command",
        "RE506",
        "steps: 5000",
        (("", "  timeout_s: 600", "  steps: 5000\n  timeout_s: 600"),),
    ),
    Broken(
        "res-keepevery",
        "command",
        "RE507",
        "keep_every_steps: 150",
        (("", "  keep: 3", "  keep: 3\n  keep_every_steps: 150"),),
    ),
    Broken(
        "tools-remote",
        "prime_rl",
        "TO601",
        'env.agent.runtime = { type = "prime" }',
        (
            (
                "tree/rl.toml",
                'env.agent.runtime = { type = "subprocess" }',
                'env.agent.runtime = { type = "prime" }',
            ),
        ),
    ),
    Broken(
        "pace-areal",
        "areal",
        "RE509",
        "freq_secs: 36000",
        (
            (
                "tree/areal.yaml",
                "  freq_steps: 20\n  freq_secs: null",
                "  freq_steps: null\n  freq_secs: 36000",
            ),
        ),
    ),
    Broken(
        "pace-prl-toml",
        "prime_rl",
        "RE509",
        "interval = 500",
        (
            ("tree/rl.toml", "keep_last = 2", "keep_last = 2\ninterval = 500"),
            ("", "  every_steps: 20\n", ""),
            ("", "steps: 200", "steps: 1000"),
            ("", "  hours: 12\n", ""),
        ),
    ),
    Broken(
        "pace-often",
        "prime_rl",
        "RE509",
        "every_steps: 1",
        (
            ("tree/rl.toml", "batch_size = 128", "batch_size = 16"),
            ("tree/rl.toml", "seq_len = 4096", "seq_len = 2048"),
            ("tree/rl.toml", "max_completion_tokens = 2048", "max_completion_tokens = 1024"),
            ("tree/rl.toml", "max_model_len = 4096", "max_model_len = 2048"),
            ("", "every_steps: 20", "every_steps: 1"),
        ),
    ),
    Broken(
        "upload-areal",
        "areal",
        "RE503",
        "upload_mb_per_s_max: 5",
        (
            (
                "tree/areal.yaml",
                "  freq_steps: 20\n  freq_secs: null",
                "  freq_steps: null\n  freq_secs: 1800",
            ),
            ("", "  keep: 2", "  keep: 2\n  upload_mb_per_s_max: 5"),
        ),
    ),
    Broken(
        "cmd-multi-nproc",
        "command",
        "HW103",
        "--nproc-per-node 4",
        (
            (
                "",
                "  command: python train.py --config base.yaml --out {checkpoints}",
                "  command: >-\n    torchrun --standalone\n    --nproc-per-node 4\n    train.py --out "
                "{checkpoints}",
            ),
        ),
    ),
    Broken(
        "areal-multi",
        "areal",
        "TR402",
        "recover.mode=off experiment_name=gsm8k trial_name=trial0",
        (("", "    experiment_name=gsm8k", "    recover.mode=off experiment_name=gsm8k"),),
    ),
    Broken(
        "hf-outdir",
        "hf",
        "TR434",
        "output_dir: /root/runs",
        (
            ("tree/trl.yaml", "output_dir: out", "output_dir: /root/runs"),
            ("", " --output_dir {checkpoints}", ""),
        ),
    ),
    Broken("hf-bf16-v100", "hf", "TR432", "bf16: true", (("", "H100_80GB", "V100_32GB"),)),
    Broken(
        "grpo-gen1",
        "grpo.yaml",
        "TR430",
        "num_generations: 1",
        (("", "num_generations: 8", "num_generations: 1"),),
    ),
    Broken(
        "secret-multi-setup",
        "command",
        "PT020",
        f"wandb login {WB}",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                f"  - |\n    pip install wandb\n    wandb login {WB}\n    echo done",
            ),
        ),
    ),
    Broken("hf-pattern", "hf", "TR436", "pattern: step_{step}", (("", "checkpoint-{step}", "step_{step}"),)),
    Broken(
        "hf-pattern-default", "hf", "TR436", "checkpoints:", (("", "  pattern: checkpoint-{step}\n", ""),)
    ),
    Broken("hf-disk", "hf", "HW108", "disk_gib: 50", (("", "disk_gib: 300", "disk_gib: 50"),)),
    Broken(
        "hf-mem",
        "hf",
        "ME206",
        "gpus: [H100_80GB]",
        (
            ("tree/trl.yaml", "Qwen3-4B", "Qwen3-32B"),
            ("", "disk_gib: 300", "disk_gib: 3000"),
        ),
    ),
    Broken(
        "maxdisk",
        "command",
        "HW107",
        "max_disk_gib: 200",
        (("", "  keep: 3", "  keep: 3\n  max_disk_gib: 200"),),
    ),
    Broken(
        "wandb-mode",
        "command",
        "TR458",
        "WANDB_MODE: onlin",
        (("", "WANDB_MODE: online", "WANDB_MODE: onlin"),),
    ),
    Broken("usd-text", "command", "PT012", "usd: '40'", (("", "usd: 40", "usd: '40'"),)),
    Broken(
        "pattern-jsonl",
        "command",
        "PT013",
        "pattern: 'a(?P<step>.)'",
        (("", "    file: progress.jsonl", "    file: progress.jsonl\n    pattern: 'a(?P<step>.)'"),),
    ),
    Broken("spot-bool", "command", "PT014", "spot: no", (("", "spot: prefer", "spot: no"),)),
    Broken("count-text", "command", "PT012", "count: one", (("", "count: 1", "count: one"),)),
    Broken("two-budget", "command", "PT006", "budget:", (("", "budget:", "budget:\n  usd: 3\nbudget:"),)),
    Broken(
        "setup-list-map",
        "command",
        "PT012",
        "- run: pip install x",
        (("", "  - python -m pip install -q -r requirements.txt", "  - run: pip install x"),),
    ),
    Broken("verify-neg", "command", "PT013", "at_least: -2", (("", "    at_least: 2", "    at_least: -2"),)),
    Broken(
        "sentinel-empty", "command", "PT013", "sentinel: ''", (("", "sentinel: COMPLETE", "sentinel: ''"),)
    ),
    Broken(
        "best-by",
        "command",
        "PT013",
        "best_by: accuracy",
        (("", "  keep: 3", "  keep: 3\n  keep_best: 2\n  best_by: accuracy"),),
    ),
    Broken(
        "zero-price",
        "command",
        "PT013",
        "usd_per_hour_max: 0",
        (("", "  spot: prefer", "  spot: prefer\n  usd_per_hour_max: 0"),),
    ),
    Broken(
        "logrule",
        "command",
        "PT013",
        "- pattern: '(nan'",
        (("", "  silence_s: 300", "  silence_s: 300\n  log_rules:\n    - pattern: '(nan'"),),
    ),
    Broken("health-typo", "command", "PT010", "silence: 300", (("", "  silence_s: 300", "  silence: 300"),)),
    Broken(
        "env-null",
        "command",
        "PT012",
        "FOO:",
        (("", "  WANDB_MODE: online", "  WANDB_MODE: online\n  FOO:"),),
    ),
    Broken(
        "env-list",
        "command",
        "PT012",
        "FOO: [a, b]",
        (("", "  WANDB_MODE: online", "  WANDB_MODE: online\n  FOO: [a, b]"),),
    ),
    Broken("missing-kind", "prime_rl", "PT011", "trainer:", (("", "  kind: prime_rl\n", ""),)),
    Broken("prl-nosteps", "prime_rl", "PT013", "kind: prime_rl", (("", "  steps: 200\n", ""),)),
    Broken(
        "prl-command",
        "prime_rl",
        "PT013",
        "command: rl @ rl.toml",
        (("", "  steps: 200\n", "  steps: 200\n  command: rl @ rl.toml\n"),),
    ),
    Broken(
        "prl-noref",
        "prime_rl",
        "PT011",
        "prime_rl:",
        (("", "    ref: 559b4477000000000000000000000000000000aa\n", ""),),
    ),
    Broken(
        "prl-folder",
        "prime_rl",
        "PT013",
        "folder: checkpoints",
        (("", "  keep: 2", "  keep: 2\n  folder: checkpoints"),),
    ),
    Broken(
        "areal-trainer-fa3",
        "areal",
        "TR418",
        "attn_impl: flash_attention_3",
        (
            ("tree/areal.yaml", "flash_attention_2", "flash_attention_3"),
            ("tree/areal.yaml", "attention_backend: fa3", "attention_backend: triton"),
            ("", "H100_80GB", "A100_80GB"),
        ),
    ),
    Broken(
        "hf-fa3",
        "hf",
        "TR433",
        "attn_implementation: flash_attention_3",
        (
            ("tree/trl.yaml", "bf16: true", "bf16: true\nattn_implementation: flash_attention_3"),
            ("", "H100_80GB", "A100_80GB"),
        ),
    ),
    Broken(
        "memory-tight",
        "prime_rl",
        "ME202",
        "gpus: [H100_80GB]",
        (
            ("tree/rl.toml", "Qwen3-4B", "Qwen3-8B"),
            ("tree/rl.toml", "seq_len = 4096", "seq_len = 65536"),
            ("tree/rl.toml", "max_model_len = 4096", "max_model_len = 65536"),
            ("", "disk_gib: 300", "disk_gib: 600"),
        ),
    ),
    Broken(
        "memory-close",
        "prime_rl",
        "ME205",
        "gpus: [H100_80GB]",
        (
            ("tree/rl.toml", "Qwen3-4B", "Qwen3-8B"),
            ("tree/rl.toml", "seq_len = 4096", "seq_len = 40000"),
            ("tree/rl.toml", "max_model_len = 4096", "max_model_len = 40000"),
            ("", "disk_gib: 300", "disk_gib: 600"),
        ),
    ),
    Broken(
        "areal-beyond",
        "areal",
        "TR403",
        "freq_steps: 500",
        (("tree/areal.yaml", "freq_steps: 20", "freq_steps: 500"), ("", "  every_steps: 20\n", "")),
    ),
    Broken(
        "hf-beyond-spec",
        "hf",
        "TR423",
        "save_steps: 1200",
        (
            ("tree/trl.yaml", "save_steps: 100", "save_steps: 1200"),
            ("tree/trl.yaml", "max_steps: 1000", "num_train_epochs: 3"),
            ("", "  every_steps: 100\n", ""),
        ),
    ),
    Broken(
        "data-in-a-block",
        "command",
        "RE504",
        "python build_dataset.py",
        (
            ("", "verification:\n  - path: data/*.bin\n    at_least: 2\n    size_min: 1 MB\n", ""),
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - |\n    set -e\n    python build_dataset.py\n    echo ok",
            ),
        ),
    ),
    Broken(
        "git-in-a-block",
        "command",
        "PT035",
        "pip install git+https://github.com/acme/lib",
        (
            (
                "",
                "  - python -m pip install -q -r requirements.txt",
                "  - |\n    set -e\n    pip install git+https://github.com/acme/lib\n    echo ok",
            ),
        ),
    ),
)
