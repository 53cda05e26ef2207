"""Rules about a run's spec and about trainers other than prime-rl: the smallest mistake causes one finding at
its line, a near miss none.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from prime_train.checks import carriers, kernels, known_failures, volumes
from prime_train.checks.all_rules import all_rules
from prime_train.checks.engine import findings_with_ignored
from prime_train.checks.ignores import apply_ignores
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding
from prime_train.trainers.areal import shared_gpu as areal_shared_gpu
from prime_train.trainers.areal import timeouts as areal_timeouts
from prime_train.trainers.hf import programs as hf_programs
from prime_train.trainers.prime_rl import sft_rules
from prime_train.trainers.torchtitan import rules as torchtitan_rules
from prime_train.trainers.verl import rules as verl_rules
from tests.rules.spec_mistakes import BROKEN

OF_OTHER_TESTS = (
    *areal_shared_gpu.RULES,
    *areal_timeouts.RULES,
    *carriers.RULES,
    *hf_programs.RULES,
    *kernels.RULES,
    *known_failures.RULES,
    *sft_rules.RULES,
    *torchtitan_rules.RULES,
    *verl_rules.RULES,
    *volumes.RULES,
)
"""Rules whose errors are in `test_areal_limits`, `test_carriers`, `test_known_failures`,
`tests/configs/test_kernels` and `test_volumes`.
"""
RUN = """\
name: small
trainer:
  command: python train.py --out {checkpoints} --resume auto
  steps: 1000
  code:
    folder: TREE
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 2
checkpoints:
  every_steps: 100
budget:
  usd: 20
  hours: 10
"""
PRIME_RL = """\
name: small
trainer:
  kind: prime_rl
  steps: 200
  prime_rl:
    config: rl.toml
    ref: 559b4477000000000000000000000000000000aa
    overrides: ["@", more.toml]
  code:
    folder: TREE
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 2
  disk_gib: 2000
checkpoints:
  every_steps: 10
secrets: [WANDB_API_KEY]
wandb:
  project: small
budget:
  usd: 20
  hours: 10
"""
RL_TOML = """\
seq_len = 2048
[model]
name = "Qwen/Qwen3-4B"
[deployment]
num_train_gpus = 1
num_infer_gpus = 1
[orchestrator]
batch_size = 128
group_size = 16
[orchestrator.train.sampling]
max_completion_tokens = 1024
[[orchestrator.train.source]]
name = "arithmetic"
[orchestrator.train.source.env.taskset]
id = "arithmetic"
[orchestrator.train.source.env.agent.runtime]
type = "subprocess"
[inference.vllm]
max_model_len = 2048
"""
LLAMA = RL_TOML.replace("Qwen/Qwen3-4B", "meta-llama/Llama-3.2-3B").replace(
    "[orchestrator]", '[orchestrator]\nrenderer = { name = "default" }'
)
AREAL = """\
experiment_name: gsm8k
trial_name: trial0
total_train_epochs: 10
cluster:
  fileroot: /workspace/areal
actor:
  backend: fsdp:d4
  optimizer:
    lr_scheduler_type: constant
rollout:
  backend: sglang:d4
sglang:
  attention_backend: fa3
recover:
  mode: auto
  freq_steps: 20
  retries: 0
stats_logger:
  wandb:
    mode: online
"""
AREAL_RUN = RUN.replace(
    "python train.py --out {checkpoints}",
    "python -m areal.launcher.local gsm8k_rl.py --config areal.yaml cluster.fileroot=/workspace",
).replace("count: 2", "count: 8")
TRL = """\
model_name_or_path: Qwen/Qwen3-4B
output_dir: out
save_strategy: steps
save_steps: 100
save_total_limit: 2
eval_strategy: steps
max_steps: 1000
load_best_model_at_end: true
bf16: true
use_vllm: true
vllm_mode: colocate
vllm_gpu_memory_utilization: 0.3
"""
TRM = """\
data_paths: [data/arc2concept]
epochs: 100000
eval_interval: 10000
checkpoint_every_eval: true
lr: 1.0e-4
"""
TRM_RUN = RUN.replace(
    "python train.py --out {checkpoints}",
    "torchrun --nproc-per-node 2 pretrain.py data_paths=[data] epochs=1000 eval_interval=100 "
    "+checkpoint_path={checkpoints}",
).replace("  count: 2", "  count: 2\n  spot: never")

BASES = {
    "run.yaml": RUN,
    "prime_rl.yaml": PRIME_RL,
    "areal.yaml": AREAL,
    "areal_run.yaml": AREAL_RUN,
    "trl.yaml": TRL,
    "trm.yaml": TRM,
    "trm_run.yaml": TRM_RUN,
}
FILES = {
    "train.py": "",
    "gsm8k_rl.py": "",
    "pretrain.py": "",
    "rl.toml": RL_TOML,
    "more.toml": "[orchestrator]\nbatch_size = 64\n",
    "areal.yaml": AREAL,
}


@dataclass(frozen=True)
class Case:
    """A change of the base: `old` becomes `new`; the finding's line is the one that contains `at`
    afterwards.
    """

    base: str
    code: str
    old: str
    new: str
    at: str
    files: tuple[tuple[str, str], ...] = ()


TORCHRUN = "  kind: torchrun\n  workers: 2\n  command: train.py --out {checkpoints}"
SELF_RESUMING = """\
latest = os.path.join(args.out, "latest.pt")
if os.path.exists(latest):
    state = torch.load(latest)
"""
STRATEGIES = "save_strategy: steps\nsave_steps: 100\nsave_total_limit: 2\neval_strategy: steps"
LIMIT_TO_BEST = "save_total_limit: 2\neval_strategy: steps\nmax_steps: 1000\nload_best_model_at_end: true"

MISTAKES = (
    Case("prime_rl.yaml", "PT031", "config: rl.toml", "config: rll.toml", "rll.toml"),
    Case("prime_rl.yaml", "PT032", '"@", more.toml', '"@", mor.toml', "mor.toml"),
    Case("run.yaml", "PT033", "folder: TREE", "repo: https://github.com/a/b\n    ref: main", "ref: main"),
    Case("run.yaml", "PT034", "python train.py --out", "python train.py --config c.json --out", "c.json"),
    Case("run.yaml", "PT046", "budget:", "budget:\n  deadline: 2026-01-01", "2026-01-01"),
    Case("run.yaml", "PT048", "budget:", f"environment:\n  LONG: {'x' * 140_000}\nbudget:", "LONG:"),
    Case("run.yaml", "PT041", "python train.py", "python trian.py", "trian.py"),
    Case("run.yaml", "PT041", "python train.py --out", "python train.py --config c.yaml --out", "c.yaml"),
    Case("run.yaml", "PT042", "budget:", "health:\n  log_rules: [{pattern: '(a)(?=b)'}]\nbudget:", "(?=b)"),
    Case(
        "run.yaml",
        "PT035",
        "budget:",
        "setup:\n- pip install git+https://github.com/a/b.git\nbudget:",
        "a/b.git",
    ),
    Case("run.yaml", "PT036", "budget:", "environment:\n  HF_TOKEN: ${HF_TOKEN}\nbudget:", "${HF_TOKEN}"),
    Case("run.yaml", "PT051", "budget:", "rehearsed: 0123456789ab\nbudget:", "rehearsed:"),
    Case("prime_rl.yaml", "PT037", "secrets: [WANDB_API_KEY]\n", "", "wandb:"),
    Case("run.yaml", "PT039", "budget:", "environment:\n  Seed: '1'\n  SEED: '2'\nbudget:", "SEED:"),
    Case(
        "run.yaml", "PT045", "budget:", "secrets: [AWS_SECRET_ACCESS_KEY]\nbudget:", "AWS_SECRET_ACCESS_KEY"
    ),
    Case("run.yaml", "PT045", "budget:", "secrets: [HF_TOKEN, PRIME_API_KEY]\nbudget:", "PRIME_API_KEY"),
    Case("run.yaml", "PT045", "budget:", "secrets: [JUDGE_KEY]\nbudget:", "JUDGE_KEY"),
    Case("run.yaml", "RE501", "checkpoints:\n  every_steps: 100\n", "", "name: small"),
    Case("run.yaml", "RE502", "every_steps: 100", "every_steps: 1001", "1001"),
    Case(
        "run.yaml",
        "RE504",
        "budget:",
        "setup:\n- pip install x\n- python dataset/build_arc_dataset.py\nbudget:",
        "build_arc",
    ),
    Case(
        "run.yaml", "RE504", "budget:", "setup: [python prepare_data.py --out data]\nbudget:", "prepare_data"
    ),
    Case("run.yaml", "RE505", "usd: 20", "usd: 220", "220"),
    Case(
        "run.yaml",
        "RE506",
        "budget:",
        "smoke:\n  command: python train.py\n  steps: 1000\nbudget:",
        "  steps: 1000\nbudget",
    ),
    Case("run.yaml", "RE507", "every_steps: 100", "every_steps: 100\n  keep_every_steps: 250", "keep_every"),
    Case("run.yaml", "RE511", " --resume auto", "", "python train.py"),
    Case("run.yaml", "RE511", "--resume auto", "--resume false", "python train.py"),
    Case(
        "run.yaml",
        "RE511",
        " --resume auto",
        " --no_resume --dataloader_num_workers 2 --load_in_4bit",
        "python train.py",
    ),
    Case(
        "run.yaml",
        "RE511",
        "  command: python train.py --out {checkpoints} --resume auto",
        TORCHRUN,
        "train.py",
    ),
    Case(
        "run.yaml",
        "RE511",
        "{checkpoints} --resume auto",
        "out",
        "python train.py",
        (("checkpoints", "  folder: out\n  pattern: 'm_{step}.pt'\n  also: ['o_{step}.pt']\n"),),
    ),
    Case("run.yaml", "TR451", "budget:", "environment: {WANDB_DISABLED: 'false'}\nbudget:", "WANDB_DISABLED"),
    Case("run.yaml", "HW103", "python train.py", "torchrun --nproc-per-node 4 train.py", "torchrun"),
    Case("run.yaml", "HW103", "python train.py", "torchrun --nproc_per_node=8 train.py", "torchrun"),
    Case("run.yaml", "TR453", "python train.py", "torchrun --max-restarts=3 train.py", "torchrun"),
    Case(
        "run.yaml",
        "TR454",
        "  command: python",
        "  kind: torchrun\n  workers: 2\n  stop_s: 90\n  command:",
        "stop_s",
    ),
    Case("run.yaml", "TR455", "H100_80GB", "RTX3090_24GB", "gpus:"),
    Case("run.yaml", "TR429", "python train.py", "trl grpo", "trl grpo"),
    Case("run.yaml", "TR429", "  command: python train.py", "  kind: hf\n  command: trl grpo", "trl grpo"),
    Case(
        "run.yaml",
        "TR437",
        "trainer:\n  command: python train.py",
        "setup: ['pip install trl==1.14.1']\ntrainer:\n  command: trl grpo",
        "trl grpo",
    ),
    Case(
        "run.yaml",
        "TR459",
        "  command: python",
        "  kind: lightning\n  resume: --from {step}\n  command: python",
        "--from {step}",
    ),
    Case(
        "run.yaml",
        "TR459",
        "  command: python",
        "  kind: torchtitan\n  command: --checkpoint.no-enable python",
        "--checkpoint",
    ),
    Case(
        "run.yaml",
        "TR459",
        "  command: python train.py",
        "  kind: verl\n  command: python3 -m verl.trainer.main_ppo",
        "python3",
    ),
    Case("areal.yaml", "TR401", "mode: auto", "mode: fault", "fault"),
    Case("areal.yaml", "TR402", "mode: auto", "mode: disabled", "disabled"),
    Case("areal.yaml", "TR402", "mode: auto", "mode: off", "mode: off"),
    Case("areal.yaml", "TR402", "  mode: auto\n", "", "recover:"),
    Case("areal.yaml", "TR403", "  freq_steps: 20\n", "", "recover:"),
    Case("areal.yaml", "TR404", "freq_steps: 20", "freq_epochs: 1", "freq_epochs"),
    Case(
        "areal_run.yaml", "TR405", "cluster.fileroot=/workspace", "cluster.fileroot=/tmp/areal", "/tmp/areal"
    ),
    Case("areal.yaml", "TR406", "lr_scheduler_type: constant", "lr_scheduler_type: cosine", "cosine"),
    Case(
        "areal.yaml",
        "TR407",
        "    mode: online",
        "    mode: online\n    api_key: 0123456789abcdef",
        "api_key",
    ),
    Case("areal.yaml", "TR408", "mode: online", "mode: onlin", "onlin"),
    Case("areal.yaml", "TR409", "  optimizer:", "  behave_imp_weight_cap: 5\n  optimizer:", "behave"),
    Case("areal.yaml", "TR410", "backend: fsdp:d4", "backend: d4t2", "d4t2"),
    Case("areal_run.yaml", "TR411", "H100_80GB", "A100_80GB", "attention_backend"),
    Case(
        "areal_run.yaml", "TR412", "cluster.fileroot", "recover.retries=2 cluster.fileroot", "recover.retries"
    ),
    Case("areal.yaml", "TR413", "total_train_epochs: 10", "total_train_epochs: 0", "total_train"),
    Case("trl.yaml", "TR421", STRATEGIES, "save_strategy: no\neval_strategy: no", "save_strategy"),
    Case("trl.yaml", "TR422", "bf16: true", "bf16: true\nsave_only_model: true", "only"),
    Case("trl.yaml", "TR423", "save_steps: 100", "save_steps: 2000", "2000"),
    Case("trl.yaml", "TR424", "eval_strategy: steps", "eval_strategy: epoch", "load_best"),
    Case("trl.yaml", "TR425", "bf16: true", "bf16: true\nfp16: true", "fp16"),
    Case(
        "trl.yaml",
        "TR426",
        LIMIT_TO_BEST,
        LIMIT_TO_BEST.replace("limit: 2", "limit: 1").replace("true", "false"),
        "total_limit",
    ),
    Case("trl.yaml", "TR438", "save_total_limit: 2", "save_total_limit: 1", "total_limit"),
    Case(
        "run.yaml",
        "TR439",
        "python train.py --out {checkpoints}",
        "python train.py --out {checkpoints} --save_total_limit 1 --load_best_model_at_end",
        "save_total_limit",
    ),
    Case("trl.yaml", "TR427", "bf16: true", "bf16: true\nauto_find_batch_size: true", "auto_find"),
    Case("trl.yaml", "TR428", "utilization: 0.3", "utilization: 0.9", "0.9"),
    Case("trm.yaml", "TR441", "eval_interval: 10000", "eval_interval: 30000", "30000"),
    Case("trm_run.yaml", "TR441", "eval_interval=100", "eval_interval=300", "eval_interval=300"),
    Case("trm.yaml", "TR442", "every_eval: true", "every_eval: false", "every_eval"),
    Case("trm_run.yaml", "TR443", "torchrun --nproc-per-node 2", "python", "pretrain.py"),
    Case("trm_run.yaml", "TR444", "epochs=1000", "epochs=1000 run_name=x", "run_name"),
    Case("trm_run.yaml", "TR445", " +checkpoint_path={checkpoints}", "", "pretrain.py"),
    Case("trm_run.yaml", "TR446", "  spot: never", "  spot: prefer", "spot"),
    Case(
        "prime_rl.yaml",
        "TO601",
        "name",
        "name",
        'type = "prime"',
        (("rl.toml", RL_TOML.replace("subprocess", "prime")),),
    ),
    Case("prime_rl.yaml", "PT038", "name", "name", "meta-llama", (("rl.toml", LLAMA),)),
    Case("prime_rl.yaml", "RE503", "every_steps: 10", "every_steps: 2\n  upload_mb_per_s_max: 10", "upload"),
)

NEAR_MISSES = (
    Case(
        "prime_rl.yaml",
        "PT031",
        "config: rl.toml",
        "config: made.toml",
        "",
        (("setup", "python make.py made.toml"),),
    ),
    Case("run.yaml", "PT033", "folder: TREE", f"repo: https://github.com/a/b\n    ref: {'0a' * 20}", ""),
    Case("run.yaml", "PT034", "python train.py", "cd src && python elsewhere.py", ""),
    Case("run.yaml", "PT034", "python train.py", "python -m package.train", ""),
    Case(
        "run.yaml",
        "PT034",
        "python train.py",
        "python -m torchtitan.train --module llama3 --config llama3_8b",
        "",
    ),
    Case("run.yaml", "PT034", "python train.py", "python /opt/train.py", ""),
    Case(
        "run.yaml",
        "PT035",
        "budget:",
        "setup: [pip install git+https://github.com/a/b@0123abc, pip install torch]\nbudget:",
        "",
    ),
    Case("run.yaml", "PT051", "budget:", "rehearsed: waived\nbudget:", ""),
    Case("run.yaml", "PT035", "budget:", "setup: [pip install git+ssh://git@github.com/a/b@v1]\nbudget:", ""),
    Case(
        "run.yaml", "PT036", "budget:", "environment: {PS1: '$ ', PRICE: 5$, MASK: '${step}x'}\nbudget:", ""
    ),
    Case("prime_rl.yaml", "PT037", "secrets: [WANDB_API_KEY]\n", "environment: {WANDB_MODE: offline}\n", ""),
    Case("run.yaml", "PT045", "budget:", "secrets: [HF_TOKEN, WANDB_API_KEY, COMET_API_KEY]\nbudget:", ""),
    Case("run.yaml", "RE501", "checkpoints:\n  every_steps: 100\n", "", "", (("hardware", "spot: never"),)),
    Case("run.yaml", "RE502", "every_steps: 100", "every_steps: 1000", ""),
    Case(
        "run.yaml",
        "RE504",
        "budget:",
        "setup: [python dataset/build_x_dataset.py]\nverification: [{path: data/*}]\nbudget:",
        "",
    ),
    Case(
        "run.yaml",
        "RE504",
        "budget:",
        "setup: [pip install datasets, make data, python build_metadata.py]\nbudget:",
        "",
    ),
    Case(
        "run.yaml",
        "RE505",
        "budget:\n  usd: 20",
        "smoke: {command: python train.py --steps 2}\nbudget:\n  usd: 120",
        "",
    ),
    Case("run.yaml", "RE507", "every_steps: 100", "every_steps: 100\n  keep_every_steps: 500", ""),
    Case("run.yaml", "RE511", " --resume auto", "\n  resume: --init_from resume", ""),
    Case("run.yaml", "RE511", " --resume auto", "\n  resume: ''", ""),
    Case("run.yaml", "RE511", " --resume auto", " --auto_resume", ""),
    Case("run.yaml", "RE511", " --resume auto", " train.resume=true", ""),
    Case("run.yaml", "RE511", " --resume auto", " --load=save", ""),
    Case(
        "run.yaml",
        "RE511",
        " --resume auto",
        "",
        "",
        (("train.py", "p.add_argument('--resume-step', type=int)"),),
    ),
    Case("run.yaml", "RE511", " --resume auto", "", "", (("train.py", SELF_RESUMING),)),
    Case(
        "run.yaml",
        "RE511",
        "python train.py --out {checkpoints} --resume auto",
        "-m torchtitan.train",
        "",
        (("kind", "torchtitan"),),
    ),
    Case(
        "run.yaml",
        "RE511",
        "{checkpoints} --resume auto",
        "out",
        "",
        (("checkpoints", "  folder: out\n  also: [latest]\n"),),
    ),
    Case("run.yaml", "TR451", "budget:", "environment: {WANDB_DISABLED: 'true'}\nbudget:", ""),
    Case("run.yaml", "HW103", "python train.py", "torchrun --nproc-per-node 2 train.py", ""),
    Case("run.yaml", "HW103", "python train.py", "torchrun --nproc-per-node gpu train.py", ""),
    Case("run.yaml", "TR454", "  command: python", "  kind: torchrun\n  workers: 2\n  command: python", ""),
    Case("run.yaml", "TR455", "H100_80GB", "A100_80GB", ""),
    Case("run.yaml", "TR455", "H100_80GB", "RTX4090_24GB", ""),  # the agent sets it there
    Case(
        "run.yaml",
        "TR455",
        "H100_80GB",
        "RTX3090_24GB",
        "",
        (("budget", "environment: {NCCL_P2P_DISABLE: '1'}"),),
    ),
    Case("areal.yaml", "TR402", "mode: auto", "mode: on", ""),
    Case("areal.yaml", "TR401", "mode: auto", "mode: ${mode}", ""),
    Case("areal.yaml", "TR406", "backend: fsdp:d4", "backend: megatron:d4", ""),
    Case(
        "areal_run.yaml",
        "TR402",
        "cluster.fileroot",
        "recover.mode=auto cluster.fileroot",
        "",
        (("areal.yaml", AREAL.replace("auto", "off")),),
    ),
    Case(
        "areal_run.yaml", "TR411", "A100", "A100", "", (("areal.yaml", AREAL.replace("fa3", "flashinfer")),)
    ),
    Case("trl.yaml", "TR424", "eval_strategy: steps", "eval_strategy: epoch", "", (("best", "false"),)),
    Case("trl.yaml", "TR428", "utilization: 0.3", "utilization: 0.9\nvllm_enable_sleep_mode: true", ""),
    Case(
        "trm_run.yaml", "TR443", "torchrun --nproc-per-node 2", "python", "", (("command", "evaluators=[]"),)
    ),
    Case("run.yaml", "TR429", "python train.py", "python my_trl.py sft", ""),
    Case(
        "run.yaml",
        "TR459",
        "  command: python",
        "  kind: lightning\n  resume: --from {checkpoint}\n  command: python",
        "",
    ),
    Case(
        "run.yaml",
        "TR429",
        "trainer:\n  command: python train.py",
        "setup: [\"pip install 'trl[vllm]>=1.15'\"]\ntrainer:\n  command: trl grpo",
        "",
    ),
    Case(
        "run.yaml",
        "TR437",
        "trainer:\n  command: python train.py",
        "setup: ['pip install trl==1.16.0']\ntrainer:\n  command: trl grpo",
        "",
    ),
)


def found(folder: Path, case: Case) -> tuple[str, tuple[Finding, ...]]:
    """Return the changed text, and its findings."""
    for name, text in (FILES | {name: text for name, text in case.files if name in FILES}).items():
        (folder / "tree").mkdir(exist_ok=True)
        (folder / "tree" / name).write_text(text)
    base = BASES[case.base].replace("TREE", str(folder / "tree"))
    assert case.old.replace("TREE", str(folder / "tree")) in base or case.old == "A100"
    text = base.replace(
        case.old.replace("TREE", str(folder / "tree")), case.new.replace("TREE", str(folder / "tree")), 1
    )
    for name, more in case.files:
        match name:
            case "setup":
                text += f"setup: [{more}]\n"
            case "hardware":
                text = text.replace("  provider: prime", f"  provider: prime\n  {more}")
            case "checkpoints":
                text = text.replace("checkpoints:\n", f"checkpoints:\n{more}")
            case "kind":
                text = text.replace("  command:", f"  kind: {more}\n  command:")
            case "best":
                text = text.replace("at_end: true", f"at_end: {more}")
            case "budget":
                text = text.replace("budget:", f"{more}\nbudget:")
            case "command":
                text = text.replace("pretrain.py", f"pretrain.py {more}")
    path = folder / case.base
    path.write_text(text)
    (loaded,) = load_configs([path])
    assert not [finding for finding in loaded.findings if finding.severity == "error"], loaded.findings
    assert loaded.subject is not None
    return text, apply_ignores((*loaded.findings, *findings_with_ignored(loaded.subject)), loaded.sources)


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: f"{case.code}-{case.new[:30]}")
def test_an_error_fires_its_code_alone_and_at_its_line(case: Case, tmp_path: Path) -> None:
    text, findings = found(tmp_path, case)
    assert [finding.code for finding in findings] == [case.code], findings
    (finding,) = findings
    said_in = text if Path(finding.file).name == case.base else Path(finding.file).read_text()
    rest = said_in.split("\n")[finding.line - 1 :]
    assert case.at in "\n".join(rest[:2]), finding
    assert case.at.split("\n")[0] in rest[0], finding
    assert finding.fix


@pytest.mark.parametrize("case", NEAR_MISSES, ids=lambda case: f"{case.code}-{case.new[:30]}")
def test_a_near_miss_does_not_fire(case: Case, tmp_path: Path) -> None:
    _, findings = found(tmp_path, case)
    assert case.code not in {finding.code for finding in findings}, findings


@pytest.mark.parametrize("base", sorted(BASES))
def test_a_good_config_is_left_alone(base: str, tmp_path: Path) -> None:
    _, findings = found(tmp_path, Case(base, "", "A100", "A100", ""))
    assert findings == ()


def test_every_rule_here_has_an_error_that_fires_it() -> None:
    families = ("PT0", "TR4", "RE5", "TO6")
    reported = {case.code for case in (*MISTAKES, *BROKEN)} | {rule.code for rule in OF_OTHER_TESTS}
    assert {rule.code for rule in all_rules() if rule.code.startswith(families)} <= reported
