"""Configs are made of files of SkyPilot, Kubernetes and dstack: what they say is carried over, or listed with
its line and the reason.
"""

import random
import shlex
import subprocess
from pathlib import Path

import pytest

from prime_train.errors import UsageError
from prime_train.interop.imports.convert import Imported, imported
from prime_train.interop.imports.gpus import kind_of
from prime_train.interop.imports.quantities import gib_of, hours_of
from prime_train.spec.choices import Spot
from prime_train.spec.finding import has_errors
from prime_train.spec.overrides import config_text
from prime_train.spec.reader import read_text
from prime_train.spec.spec import RunSpec
from prime_train.text.invocations import worded
from tests.cli.shell import Shell
from tests.exhaustive import some_of

DATA = Path(__file__).resolve().parents[1] / "data" / "imports"
FILES = ("sky.yaml", "job.yaml", "grpo.dstack.yml")


def made_of(text: str, folder: Path, name: str = "given.yaml") -> Imported:
    path = folder / name
    path.write_text(text)
    return imported(path, None, name="", usd=20.0)


def spec_of(made: Imported) -> RunSpec:
    spec = read_text(made.text, str(made.path)).spec
    assert spec is not None, made.text
    return spec


def of_data(name: str) -> tuple[RunSpec, dict[str, str], dict[str, int]]:
    """Return the spec that a file becomes, and reason and line of what was left out, by its keys."""
    made = imported(DATA / name, None, name="", usd=20.0)
    assert not has_errors(made.findings), made.findings
    return spec_of(made), {one.what: one.why for one in made.left}, {one.what: one.line for one in made.left}


def test_a_skypilot_task_becomes_a_config() -> None:
    spec, why, lines = of_data("sky.yaml")
    hardware = spec.hardware
    assert (spec.name, hardware.gpus, hardware.count, hardware.spot) == (
        "llama-finetune",
        ("A100_80GB", "H100"),
        8,
        Spot.ONLY,
    )
    assert (hardware.usd_per_hour_max, hardware.disk_gib) == (24.0, 512)
    assert spec.environment == {
        "MODEL": "meta-llama/Llama-3.1-8B",
        "BATCH": "16",
        "SKYPILOT_NUM_GPUS_PER_NODE": "8",
    }
    assert spec.secrets == ("HF_TOKEN", "WANDB_API_KEY")
    assert "not-a-real-key" not in imported(DATA / "sky.yaml", None, name="", usd=None).text
    # What needs bash is run by it: the text is the same script.
    shell, option, script = shlex.split(spec.trainer.command.format().removeprefix("exec "))
    assert (shell, option) == ("bash", "-c")
    assert script.startswith("source .venv/bin/activate\ntorchrun ")
    assert "--model ${MODEL} --batch $BATCH" in script
    assert lines == {
        "resources.infra": 7,
        "resources.cpus": 11,
        "resources.image_id": 13,
        "resources.job_recovery": 14,
        "envs.RUN_GROUP": 20,
        "secrets.WANDB_API_KEY": 23,
        "file_mounts./checkpoints": 26,
        "file_mounts./data": 29,
    }
    assert "has no digest" in why["resources.image_id"]


def test_a_kubernetes_job_becomes_a_config() -> None:
    spec, why, lines = of_data("job.yaml")
    assert (spec.name, spec.hardware.gpus, spec.hardware.count, spec.hardware.spot) == (
        "bert-pretrain",
        ("H100_80GB",),
        4,
        Spot.ONLY,
    )
    assert (spec.hardware.disk_gib, spec.budget.hours) == (400, 24.0)
    assert spec.hardware.image is not None
    assert spec.hardware.image.startswith("registry.example.org/bert@sha256:")
    assert (spec.environment, spec.secrets) == ({"SEED": "7"}, ("HF_TOKEN",))
    assert set(lines) == {
        "ConfigMap",
        "metadata.namespace",
        "metadata.labels",
        "spec.backoffLimit",
        "spec.template.metadata.labels",
        *(f"spec.template.spec.{key}" for key in ("restartPolicy", "tolerations", "initContainers")),
        "spec.template.spec.nodeSelector.topology.kubernetes.io/zone",
        *(
            f"spec.template.spec.containers[0].{key}"
            for key in ("name", "env.NODE", "env.LR", "envFrom", "volumeMounts.data")
        ),
        *(f"spec.template.spec.containers[0].resources.requests.{key}" for key in ("cpu", "memory")),
    }
    mounted = "spec.template.spec.containers[0].volumeMounts.data"
    assert (lines["ConfigMap"], lines["spec.backoffLimit"], lines[mounted]) == (1, 15, 52)
    assert "another object of Kubernetes" in why["ConfigMap"]


def test_arguments_of_a_container_reach_the_program_as_kubernetes_would_give_them() -> None:
    spec, _, _ = of_data("job.yaml")
    folder, shown = spec.trainer.command.format().split("\n")
    assert folder == "cd /workspace"
    shown = shown.replace("python -m pretrain", "printf '%s\\n'", 1)
    done = subprocess.run(
        ["/bin/sh", "-c", shown], env={"SEED": "7 8"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["--seed", "7 8", "--title", "it's a test", "--price", "$5"]


def test_a_dstack_task_becomes_a_config() -> None:
    spec, why, lines = of_data("grpo.dstack.yml")
    hardware = spec.hardware
    assert (spec.name, hardware.gpus, hardware.spot, hardware.usd_per_hour_max) == (
        "grpo-qwen",
        ("A100",),
        Spot.PREFER,
        9.5,
    )
    assert [(one.count, one.gpu_gb_min) for one in hardware.variants] == [(4, 40)]
    assert (hardware.disk_gib, spec.budget.hours) == (300, 12.0)
    assert spec.setup == ("pip install -r requirements.txt", "uv pip install flash-attn --no-build-isolation")
    assert spec.trainer.command.startswith("set -e\ncd examples\naccelerate launch")
    assert spec.environment == {"WANDB_PROJECT": "grpo", "STEPS": "500", "DSTACK_GPUS_NUM": "4"}
    assert spec.secrets == ("HF_TOKEN",)
    assert {
        key: lines[key]
        for key in ("python", "nodes", "env.DATA_URL", "ports", "resources.shm_size", "backends", "volumes")
    } == {
        "python": 3,
        "nodes": 4,
        "env.DATA_URL": 9,
        "ports": 17,
        "resources.shm_size": 21,
        "backends": 25,
        "volumes": 26,
    }
    assert "one machine" in why["nodes"]


@pytest.mark.parametrize("name", FILES)
def test_every_key_is_carried_over_or_listed(name: str, tmp_path: Path) -> None:
    """A key that no tool has is put into every mapping of the file, one at a time: each is listed with its
    line.
    """
    lines = (DATA / name).read_text().splitlines()
    places = [
        number
        for number, line in enumerate(lines)
        if line.strip()
        and not line.lstrip().startswith(("#", "-", "{"))
        and ":" in line
        and not line.rstrip().endswith(("|", "\\"))
    ]
    script = {
        number
        for number, line in enumerate(lines)
        if any(word in line for word in ("uv ", "source ", "torchrun ", "--model "))
    }
    unread = range(7) if name == "job.yaml" else ()  # another object, which is listed as a whole
    for number in (number for number in places if number not in script and number not in unread):
        indent = len(lines[number]) - len(lines[number].lstrip())
        changed = [*lines[:number], f"{' ' * indent}zzUnknown: 5", *lines[number:]]
        left = made_of("\n".join(changed), tmp_path).left
        covering = [
            one
            for one in left
            if "zzUnknown" in one.what or (one.line <= number + 1 and one.what and "zz" not in one.what)
        ]
        assert any(one.line == number + 1 and one.what.endswith("zzUnknown") for one in left) or covering, (
            name,
            number + 1,
            left,
        )


def test_secrets_written_out_in_a_file_are_in_no_config(tmp_path: Path) -> None:
    token = "hf_" + "a1" * 12
    text = (
        f"name: x\nenvs: {{OTHER: {token}, DB_PASSWORD: hunter2hunter2}}\nsetup: pip install x\nrun: "
        "|\n "
        f" cd x\n  hf login {token}\n"
    )
    made = made_of(text, tmp_path)
    assert token not in made.text
    assert "hunter2" not in made.text
    assert spec_of(made).secrets == ("OTHER", "DB_PASSWORD")
    assert "$REMOVED_SECRET" in made.text
    assert [one.line for one in made.left if one.what == "run"] == [6]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("type: service\ncommands: [python serve.py]\n", "of type 'service'"),
        ("apiVersion: batch/v1\nkind: CronJob\nspec: {}\n", "of kind 'CronJob'"),
        ("name: mnist\ntrainer: {command: x}\n", "no SkyPilot task"),
        ("- run: x\n", "holds a list"),
        ("run: [unclosed\n", "given.yaml:2:1: not YAML"),
        ("run: x\nenvs:\n\tA: b\n", "given.yaml:3:1: a tab character"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: {{ .Release.Name }}}\n", "given.yaml:3"),
        ("a: &a [x, x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(60)) + "run: x\n", "aliases"),
        ("run: " + "[" * 40 + "\n", "levels of nesting"),
        ("run: x # " + "y" * 1_100_000, "larger than 1 MiB"),
        ("run: x # " + "y" * 200_000, "characters, and the commands of a run at most 131072"),
        ("run: x\x00\n", "is binary"),
        ("", "the file is empty"),
        ("run: x\n---\n" * 120, "more than 100 documents"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        made_of(text, tmp_path)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("resources:\n  accelerators: tpu-v4-8\nrun: x\n", "resources.accelerators", 2),
        ("resources: {accelerators: 'A100:0.5'}\nrun: x\n", "resources.accelerators", 1),
        (
            "resources:\n  any_of:\n    - {accelerators: 'H100:8'}\n    - {accelerators: 'A100:4', zone: "
            "z}\nrun: x\n",
            "resources.any_of.zone",
            4,
        ),
        ("run: x\nnum_nodes: 4\n", "num_nodes", 2),
        ("run: x\nenvs: {A-B: c}\n", "envs.A-B", 2),
        ("run: x\nrun_more: y\n", "run_more", 2),
        (
            "type: task\ncommands: [x]\nresources: {gpu: {vendor: amd, name: MI300X}}\n",
            "resources.gpu.vendor",
            3,
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{args: [a]}]}}}\n",
            "spec.template.spec.containers[0].args",
            3,
        ),
    ],
)
def test_what_a_run_cannot_be_is_listed(text: str, what: str, line: int, tmp_path: Path) -> None:
    assert (what, line) in [(one.what, one.line) for one in made_of(text, tmp_path).left]


def test_what_is_missing_is_named(tmp_path: Path, shell: Shell) -> None:
    shell.write("sky.yaml", "resources: {accelerators: 'H100:2'}\n")
    done = shell.run("import", "sky.yaml")
    assert done.returncode == 1
    assert "budget.usd: how much all attempts together may cost; --usd 20 sets it" in done.stderr
    assert "trainer.command: the file names no command" in done.stderr
    assert "it cannot be launched yet:" in done.stderr


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize(("kind", "file"), [("skypilot", "task.yaml"), ("dstack", "task.dstack.yml")])
def test_what_was_exported_is_imported_with_the_same_machines_and_recognised(
    kind: str, file: str, shell: Shell
) -> None:
    image = f"ghcr.io/example/train@sha256:{'ab' * 32}"
    hardware = "{gpus: [A100_80GB, H100_80GB], count: 8, spot: only, usd_per_hour_max: 20, disk_gib: 500}"
    text = (
        f"name: out\ntrainer: {{command: python train.py}}\nhardware: "
        f"{hardware}\nsecrets: "
        f"[HF_TOKEN]\nbudget: {{usd: 9}}\n"
    )
    shell.write("train.py", "")
    shell.write("out.yaml", text)
    done = shell.run(
        "export",
        "out.yaml",
        "--format",
        kind,
        "--image",
        image,
        "--output",
        "there",
        PRIME_TRAIN_BUCKET="s3://b/x",
    )
    assert done.returncode == 0, done.stderr
    made = imported(shell.here / "there" / file, None, name="", usd=9.0)
    spec = spec_of(made)
    assert {kind_of(gpu).partition("_")[0] for gpu in spec.hardware.gpus} == {"A100", "H100"}
    sizes = [(one.count, one.gpu_gb_min >= 70) for one in spec.hardware.variants] or [
        (spec.hardware.count, True)
    ]
    assert sizes == [(8, True)]
    assert (spec.hardware.spot, spec.hardware.usd_per_hour_max, spec.hardware.image) == (
        Spot.ONLY,
        20.0,
        image,
    )
    assert spec.hardware.disk_gib == 500
    assert "HF_TOKEN" in spec.secrets
    assert made.left[0].line == 1
    assert "launch the config that it was made of" in made.left[0].why


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_passes_validate_and_replaces_nothing(name: str, shell: Shell) -> None:
    done = shell.run("import", str(DATA / name), "--usd", "5", "-o", "configs/run.yaml")
    # Each mounts a bucket or a claim, or asks for several machines, so that more is left to do.
    assert (done.returncode, "wrote configs/run.yaml" in done.stdout) == (1, True)
    assert "it cannot run as it is:" in done.stderr
    assert shell.run("validate", "configs/run.yaml").returncode == 0
    before = (shell.here / "configs/run.yaml").read_text()
    refused = shell.run("import", str(DATA / name), "--usd", "9", "-o", "configs/run.yaml")
    assert (refused.returncode, "already exists and was not changed" in refused.stderr) == (2, True)
    assert (shell.here / "configs/run.yaml").read_text() == before
    assert "usd: 9" in shell.run("import", str(DATA / name), "--usd", "9").stdout


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("A100-80GB", "A100_80GB"),
        ("H100", "H100"),
        ("H100-SXM", "H100"),
        ("RTXA6000", "A6000"),
        ("NVIDIA-H100-80GB-HBM3", "H100_80GB"),
        ("NVIDIA-A100-PCIE-40GB", "A100_40GB"),
        ("nvidia-tesla-t4", "T4"),
        ("nvidia-h100-mega-80gb", "H100_80GB"),
        ("NVIDIA-GeForce-RTX-4090", "RTX4090"),
        ("MI300X", ""),
        ("", ""),
    ],
)
def test_names_of_gpus_are_those_of_configs(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_sizes_and_durations_are_those_of_each_tool() -> None:
    assert [gib_of(text) for text in ("256", "200GB", "1TB", "0", "x")] == [256, 200, 1024, None, None]
    assert [gib_of(text, decimal=True) for text in ("400Gi", "400G", "1048576Ki")] == [400, 373, 1]
    assert [hours_of(text) for text in ("6h", "90m", "3600", "2d", "1")] == [6.0, 1.5, 1.0, 48.0, None]


def test_scripts_of_several_lines_keep_them_in_the_text() -> None:
    values = {
        "a": "set -e\npython x.py\n",
        "b": " indented\nx",
        "c": "x \ny",
        "d": "tab\there\nx",
        "e": "\n\nx",
        "f": "a: b\n# c\n",
    }
    text = config_text(dict(values))
    read = read_text(text, "x.yaml").root
    assert read is not None
    assert {entry.key: getattr(entry.value, "value", None) for entry in read.entries} == values
    assert "a: |\n  set -e\n  python x.py\n" in text


@pytest.mark.parametrize("seed", some_of(range(200), one_in=20))
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_becomes_a_config_or_is_refused(name: str, seed: int, tmp_path: Path) -> None:
    """Nothing but UsageError is raised, and what is made can be read."""
    chance = random.Random(f"{name}-{seed}")
    text = (DATA / name).read_text()
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines[at] = (
                    lines[at].split(":")[0]
                    + ": "
                    + chance.choice(["[]", "{}", "null", "[[1]]", "{a: {b: c}}", "'\\u202e'", "-1", "*x"])
                    + "\n"
                )
            case 2:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case 3:
                lines[at] = " " * chance.randint(0, 4) + lines[at]
            case _:
                place = chance.randrange(len(lines[at]))
                lines[at] = (
                    lines[at][:place]
                    + chance.choice("{}[]:&*!|>'\"%@`\x1b\u2028é\0\t")
                    + lines[at][place + 1 :]
                )
        lines = lines or ["run: x\n"]
    try:
        made = made_of("".join(lines), tmp_path)
    except UsageError:
        return
    assert read_text(made.text, "made.yaml").root is not None
    assert all(one.line >= 1 and one.why for one in made.left)


@pytest.fixture(name="tree")
def _tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working tree with the scripts that commands name, as the current folder."""
    for name in ("t.py", "u.py", "srun_like.py", "train.py"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


NODES = "a run has one machine"
POD = "apiVersion: batch/v1\nkind: Job\nspec: {{template: {{spec: {}}}}}\n"


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("num_nodes: 4\nresources: {accelerators: 'H200:8'}\nrun: torchrun t.py\n", "num_nodes", NODES),
        ("type: task\nnodes: 2\ncommands: [x]\n", "nodes", NODES),
        ("resources: {accelerators: tpu-v5e-8}\nrun: x\n", "resources.accelerators", "no NVIDIA GPU"),
        ("resources: {accelerators: {MI300X: 8}}\nrun: x\n", "resources.accelerators", "no NVIDIA GPU"),
        (
            "apiVersion: batch/v1\nkind: Job\nspec: {parallelism: 4, template: {}}\n",
            "spec.parallelism",
            NODES,
        ),
        (
            POD.format("{containers: [{command: [x], resources: {limits: {google.com/tpu: 4}}}]}"),
            "spec.template.spec.containers[0].resources.limits.google.com/tpu",
            "no TPUs",
        ),
        (
            POD.format("{nodeSelector: {cloud.google.com/gke-tpu-accelerator: tpu-v5-lite}}"),
            "spec.template.spec.nodeSelector.cloud.google.com/gke-tpu-accelerator",
            "no TPUs",
        ),
    ],
)
def test_a_command_that_needs_several_machines_or_other_chips_fails_the_import(
    text: str, what: str, why: str, shell: Shell
) -> None:
    shell.write("given.yaml", text)
    done = shell.run("import", "given.yaml", "--usd", "20")
    assert done.returncode == 1
    reason = done.stderr.partition("it cannot run as it is:")[2]
    assert what in reason
    assert why in reason


SLURM = """\
#!/bin/bash
#SBATCH --job-name=Pretrain_1B
#SBATCH -N 1 --ntasks-per-node=1   # one process, which starts the others
#SBATCH --gres=gpu:h100:4
#SBATCH --time=1-12:30:00
#SBATCH --partition=gpu
#SBATCH --export=ALL,EPOCHS=3,HF_TOKEN

# Of a cluster:
module load cuda/12.4
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
awk '{print $1}' data.txt
srun --nodes=1 -n 1 --cpu-bind=none --label torchrun --nproc_per_node $SLURM_GPUS_ON_NODE train.py --epochs $EPOCHS
#SBATCH --gres=gpu:8
"""


def test_a_script_of_slurm_becomes_a_config(tree: Path) -> None:
    made = made_of(SLURM, tree, "train.slurm")
    spec, why = spec_of(made), {one.what: one.line for one in made.left}
    assert (made.tool, spec.name, spec.hardware.gpus, spec.hardware.count) == (
        "Slurm",
        "pretrain-1b",
        ("H100",),
        4,
    )
    assert (spec.budget.hours, spec.hardware.spot) == (36.5, Spot.NEVER)
    assert spec.environment == {"EPOCHS": "3", "SLURM_GPUS_ON_NODE": "4"}
    assert spec.trainer.command.format().splitlines() == [
        "export MASTER_ADDR=localhost",
        "awk '{print $1}' data.txt",
        "torchrun --nproc_per_node $SLURM_GPUS_ON_NODE train.py --epochs $EPOCHS",
    ]
    assert spec.secrets == ("HF_TOKEN",)
    assert why == {"#SBATCH --partition": 6, "module": 10}
    assert [one.what for one in made.impossible] == ["module"]


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("#SBATCH --nodes=2\nsrun train\n", "#SBATCH --nodes", "one machine"),
        ("#SBATCH -N 2-4\nsrun train\n", "#SBATCH --nodes", "one machine"),
        (
            "#SBATCH --ntasks-per-node=8\nsrun python train.py\n",
            "#SBATCH --ntasks-per-node",
            "torchrun --nproc_per_node",
        ),
        ("#SBATCH --array=0-9\npython train.py\n", "#SBATCH --array", "several runs"),
        ("#SBATCH --gres=gpu:mi300x:8\npython train.py\n", "#SBATCH --gres", "no NVIDIA GPU"),
        ("#SBATCH --gpus=32\npython train.py\n", "#SBATCH --gpus", "GPUs of one machine"),
        ("#SBATCH -G 1\npython train.py --config $1\n", "commands", "arguments of sbatch"),
        ("#SBATCH -G 1\nsrun $ARGS python train.py\n", "commands", "srun is a command of Slurm"),
        ("#SBATCH -G 1\nsrun -n 4 python train.py\n", "commands", "srun is a command of Slurm"),
        ("#SBATCH -G 1\npython train.py\nsbatch next.sh\n", "commands", "sbatch is a command of Slurm"),
    ],
)
def test_a_script_of_slurm_that_one_machine_cannot_run_is_no_config(
    text: str, what: str, why: str, shell: Shell
) -> None:
    shell.write("job.sh", f"#!/bin/bash\n{text}")
    done = shell.run("import", "job.sh", "--usd", "20")
    assert done.returncode == 1
    reason = done.stderr.partition("it cannot run as it is:")[2]
    assert f"{what}: " in reason
    assert why in reason


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("srun python t.py", "python t.py"),
        ("srun --ntasks=1 --gres=gpu:1 -u python t.py --n 2", "python t.py --n 2"),
        ("srun --mpi pmi2 -l python t.py", "python t.py"),
        ("A=1 srun python t.py && srun -n1 python u.py &", "A=1 python t.py && python u.py &"),
        ("set -e\n# srun is not used\npython t.py", "set -e\n# srun is not used\npython t.py"),
        ("python srun_like.py", "python srun_like.py"),
        ("srun --mem=0 \\\n  python t.py", "python t.py"),
    ],
)
def test_what_srun_starts_is_started_without_it(line: str, command: str, tree: Path) -> None:
    made = made_of(f"#SBATCH --gpus-per-node=a100:1\n{line}\n", tree, "t.sbatch")
    assert spec_of(made).trainer.command.format() == command
    assert not made.impossible


@pytest.mark.parametrize(
    ("limit", "hours"),
    [
        ("90", 1.5),
        ("90:00", 1.5),
        ("04:30:00", 4.5),
        ("2-0", 48),
        ("1-06:30", 30.5),
        ("UNLIMITED", None),
        ("0", None),
    ],
)
def test_a_time_limit_of_slurm_is_one_of_the_budget(limit: str, hours: float | None, tmp_path: Path) -> None:
    assert (
        spec_of(made_of(f"#SBATCH -t {limit} -G 1\npython t.py\n", tmp_path, "t.sbatch")).budget.hours
        == hours
    )


@pytest.mark.parametrize("more", ["", ", mode: MOUNT", ", mode: MOUNT_CACHED"])
def test_a_bucket_that_a_task_mounts_is_proposed_as_the_folder_of_checkpoints(
    more: str, tmp_path: Path
) -> None:
    mounts = (
        f"file_mounts:\n  /configs: ./configs\n  /output: {{name: mine, store: s3{more}}}\n  "
        "/data: "
        f"{{source: s3://d, mode: COPY}}\n"
    )
    made = made_of(
        f"{mounts}resources: {{accelerators: 'A100:1', use_spot: true}}\nrun: python t.py\n", tmp_path
    )
    assert ["/output" in worded(one) for one in made.missing if worded(one).startswith("checkpoints")] == [
        True
    ]
    assert "/data" not in " ".join(map(worded, made.missing))


def test_a_folder_of_a_dstack_task_is_one_word_of_its_command(tmp_path: Path) -> None:
    file = tmp_path / "evil.dstack.yml"
    file.write_text(
        'type: task\ncommands: ["python t.py"]\nworking_dir: "a b;touch /tmp/x $(id)"\nresources: {gpu: '
        '"A100:1"}\n'
    )
    assert "cd 'a b;touch /tmp/x $(id)'" in imported(file, None, name="x", usd=1.0).text
