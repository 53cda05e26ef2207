"""An import says yes only to what would run as it did: whatever else the file says is listed with its line, the
reason and what to do, and the exit code is 1.
"""

import random
from pathlib import Path

import pytest

from prime_train.errors import UsageError
from prime_train.interop.imports.convert import Imported, imported
from prime_train.spec.finding import has_errors
from prime_train.spec.reader import read_text
from prime_train.spec.spec import RunSpec
from tests.cli.shell import Shell
from tests.exhaustive import some_of

IMAGE = f"registry.example.org/bert@sha256:{'0123456789abcdef' * 4}"
SKY = "resources: {accelerators: 'A100:8'}\nrun: python train.py\n"
POD = "containers: [{name: main, image: %s, command: [python, train.py], resources: {limits: {nvidia.com/gpu: 4}}%s}]%s"
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: bert}\nspec:\n  template:\n    spec:\n      %s\n"
TORCH = (
    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: bert}\nspec:\n  nprocPerNode: '4'\n"
    "  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      restartPolicy: OnFailure\n      template:\n"
    "        spec:\n          %s\n%s"
)
SET = (
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: bert}\nspec:\n  replicatedJobs:\n"
    "    - name: workers\n      replicas: %s\n      template:\n        spec:\n          parallelism: %s\n"
    "          template:\n            spec:\n              %s\n%s"
)
TRAIN = (
    "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bert}\nspec:\n"
    "  runtimeRef: {name: torch-distributed}\n  trainer:\n    numNodes: %s\n    image: %s\n"
    "    command: [torchrun, train.py]\n    resourcesPerNode: {limits: {nvidia.com/gpu: 2}}\n%s"
)
DSTACK = "type: task\nname: t\ncommands: [python train.py]\nresources: {gpu: 'H100:2'}\n"
SBATCH = "#!/bin/bash\n#SBATCH --gres=gpu:a100:2\n"


@pytest.fixture(name="tree", autouse=True)
def _tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working tree with a script, as the current folder."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_of(text: str, tree: Path, name: str = "given.yaml") -> Imported:
    (tree / name).write_text(text)
    return imported(tree / name, None, name="", usd=20.0)


def spec_of(made: Imported) -> RunSpec:
    spec = read_text(made.text, str(made.path)).spec
    assert spec is not None, made.text
    return spec


def pod(more: str = "", beside: str = "") -> str:
    return POD % (IMAGE, more, beside)


GOOD = {
    "sky": SKY,
    "job": JOB % pod(),
    "torch": TORCH % (pod(), ""),
    "set": SET % (1, 1, pod(), ""),
    "train": TRAIN % (1, IMAGE, ""),
    "dstack": DSTACK,
    "slurm": f"{SBATCH}srun python train.py\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_what_runs_as_it_did_is_accepted(name: str, tree: Path) -> None:
    made = made_of(GOOD[name], tree)
    assert made.impossible == ()
    assert not has_errors(made.findings)


def test_the_operators_variables_of_torch_are_those_of_one_machine(tree: Path) -> None:
    spec = spec_of(made_of(GOOD["torch"], tree))
    assert spec.hardware.image == IMAGE
    assert (spec.hardware.variants[0].count, spec.trainer.command) == (4, "python train.py")
    assert spec.environment == {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "4",
        "RANK": "0",
        "PET_NNODES": "1",
        "PET_NPROC_PER_NODE": "4",
    }


def test_a_time_limit_and_the_kind_of_gpu_of_a_pytorch_job_are_carried_over(tree: Path) -> None:
    affinity = (
        "\n          affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-H100-80GB-HBM3]}]}]}}}"
    )
    made = made_of(TORCH % (pod(beside=affinity), "  runPolicy: {activeDeadlineSeconds: 7200}\n"), tree)
    spec = spec_of(made)
    assert (spec.hardware.gpus, spec.hardware.count, spec.budget.hours) == (("H100_80GB",), 4, 2.0)
    assert made.impossible == ()


WORKER = "    Worker:\n      replicas: 3\n      template: {spec: {containers: [{image: x}]}}\n"
NODES = "a run has one machine"


@pytest.mark.parametrize(
    ("text", "what", "line", "why"),
    [
        # SkyPilot
        (SKY + "num_nodes: 2\n", "num_nodes", 3, NODES),
        (SKY + "file_mounts:\n  /out: {name: b, mode: MOUNT}\n", "file_mounts./out", 4, "bucket is mounted"),
        (SKY + "file_mounts:\n  /data: s3://b/data\n", "file_mounts./data", 4, "content of a bucket"),
        (SKY + "file_mounts:\n  /sft: ./sft\n", "file_mounts./sft", 4, "ln -s"),
        (
            SKY + "file_mounts:\n  ~/.ssh/id: ~/.ssh/id\n",
            "file_mounts.~/.ssh/id",
            4,
            "none of these goes along",
        ),
        (SKY + "setup: echo X=1 >> ~/.bashrc\n", "setup", 3, "interactive shells"),
        (SKY + "setup: git clone git@github.com:a/b.git\n", "setup", 3, "no SSH key"),
        ("run: |\n  echo\n  x $SKY_NODE_IPS\n", "run", 3, "SKY_NODE_IPS is a variable"),
        (SKY + "volumes: {/data: v}\n", "volumes", 3, "nothing is mounted"),
        (SKY + "setup: conda install cuda\n", "setup", 3, "no conda"),
        (SKY + "setup: uv pip install x\n", "setup", 3, "uv is not on every machine"),
        (SKY + "setup: |\n  echo\n  mpirun -np 8 x\n", "setup", 5, "no MPI"),
        (SKY + "setup: aws s3 cp s3://b/x .\n", "setup", 3, "credentials of a cloud"),
        (SKY + "envs: {RUN_GROUP: null}\n", "envs.RUN_GROUP", 3, "has no value"),
        (SKY + "surprise: 1\n", "surprise", 3, "no such setting"),
        (SKY + "service: {replicas: 2}\n", "service", 3, "serves nothing"),
        (SKY.replace("A100:8", "TPU-v5p:8"), "resources.accelerators", 1, "no NVIDIA GPU"),
        (SKY.replace("A100:8", "Trainium2:16"), "resources.accelerators", 1, "no NVIDIA GPU"),
        (SKY.replace("A100:8", "A100:32"), "resources.accelerators", 1, "GPUs of one machine"),
        (SKY.replace("A100:8", "Frobnicator:8"), "resources.accelerators", 1, "no kind of GPU"),
        ("resources: {instance_type: p4d.24xlarge}\nrun: x\n", "resources.instance_type", 1, "hardware.gpus"),
        ("resources: {image_id: 'docker:a/b:1'}\nrun: x\n", "resources.image_id", 1, "has no digest"),
        ("run: |\n  echo\n  x $SKYPILOT_TASK_ID\n", "run", 3, "SKYPILOT_TASK_ID is a variable"),
        ("run: |\n  echo\n  torchrun --nnodes 2 train.py\n", "run", 3, NODES),
        ("run: |\n  echo\n  docker run --gpus all img\n", "run", 3, "without Docker"),
        ("run: |\n  echo\n  python gone.py\n", "run", 3, "gone.py: there is no such file"),
        ("run: |\n  echo\n  bash scripts/gone.sh\n", "run", 3, "no such file"),
        ("setup: pip install -r gone.txt\nrun: x\n", "setup", 1, "no such file"),
        ("run: cd ~/sky_workdir && python train.py\n", "run", 1, "sky_workdir"),
        ("run: python train.py\n---\nrun: python other.py\n", "", 3, "another object of SkyPilot"),
        ("run: x\nenvs: &e {A: b}\nmore:\n  <<: *e\n", "", 4, "merge key"),
        # dstack
        (DSTACK + "nodes: 2\n", "nodes", 5, NODES),
        (DSTACK.replace("H100:2", "MI300X:8"), "resources.gpu", 4, "no NVIDIA GPU"),
        (DSTACK.replace("H100:2", "v5litepod-8"), "resources.gpu", 4, "no NVIDIA GPU"),
        (DSTACK.replace("H100:2", "amd:192GB:8"), "resources.gpu", 4, "other accelerators"),
        (DSTACK + "python: '3.11'\n", "python", 5, "uv venv --python 3.11"),
        (DSTACK + "nvcc: true\n", "nvcc", 5, "compiler"),
        (DSTACK + "docker: true\n", "docker", 5, "without Docker"),
        (DSTACK + "files: [gone.yaml]\n", "files", 5, "not at this path"),
        (DSTACK + "files: ['train.py:/src/train.py']\n", "files", 5, "not at this path"),
        (DSTACK + "volumes: ['v:/data']\n", "volumes", 5, "nothing is mounted"),
        (DSTACK + "registry_auth: {username: a}\n", "registry_auth", 5, "private"),
        ("type: task\ncommands:\n  - x ${{ run.args }}\n", "commands", 3, "write that value"),
        ("type: task\ncommands: [jupyter lab]\nports: [8888]\n", "commands", 2, "serves and does not train"),
        # Kubernetes
        (JOB % pod() + "  completions: 4\n", "spec.completions", 8, NODES),
        (
            JOB % pod().replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"),
            "nvidia.com/mig-1g.5gb",
            7,
            "part of a GPU",
        ),
        (JOB % pod().replace("nvidia.com/gpu", "amd.com/gpu"), "amd.com/gpu", 7, "other accelerators"),
        (JOB % pod().replace(IMAGE, "a/b:1"), "image", 7, "has no digest"),
        (JOB % pod(", envFrom: [{secretRef: {name: s}}]"), "envFrom", 7, "one by one"),
        (
            JOB % pod(", env: [{name: A_KEY, value: x}, {name: B, value: 'u:$(A_KEY)'}]"),
            "env.B",
            7,
            "the secret A_KEY in it",
        ),
        (JOB % pod(", lifecycle: {postStart: {}}"), "lifecycle", 7, "commands of its own"),
        (
            JOB % pod(", env: [{name: N, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"),
            "env.N",
            7,
            "cluster",
        ),
        (
            JOB
            % pod(
                ", volumeMounts: [{name: d, mountPath: /data}]", "\n      volumes: [{name: d, hostPath: {}}]"
            ),
            "volumeMounts.d",
            7,
            "/data: nothing of a cluster is mounted",
        ),
        (JOB % pod(beside="\n      imagePullSecrets: [{name: s}]"), "imagePullSecrets", 8, "private"),
        (
            JOB % pod(beside="\n      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-x900}"),
            "gke-accelerator",
            8,
            "no kind of GPU",
        ),
        (JOB % pod().replace("train.py", "gone.py"), "command", 7, "gone.py: there is no such file"),
        (JOB % pod().replace("train.py", "--master_addr=w-0.svc, t.py"), "command", 7, "127.0.0.1"),
        (JOB % pod().replace("train.py", "-m, t, --nnodes, '2'"), "command", 7, NODES),
        (TORCH % (pod(), WORKER), "spec.pytorchReplicaSpecs.Worker", 13, NODES),
        (TORCH % (pod(), "  elasticPolicy: {maxReplicas: 2}\n"), "spec.elasticPolicy.maxReplicas", 13, NODES),
        (SET % (2, 1, pod(), ""), "spec.replicatedJobs[0].replicas", 7, NODES),
        (SET % (1, 2, pod(), ""), "spec.replicatedJobs[0].template.spec.parallelism", 10, NODES),
        (
            SET % (1, 1, pod(), "    - name: more\n      template: {}\n"),
            "spec.replicatedJobs",
            14,
            "of its own",
        ),
        (TRAIN % (2, IMAGE, ""), "spec.trainer.numNodes", 7, NODES),
        (TRAIN % (1, IMAGE, "  initializer: {dataset: {}}\n"), "spec.initializer", 11, "add what fetches"),
        (
            "\n".join((TRAIN % (1, IMAGE, "")).splitlines()[:6]),
            "spec.trainer",
            6,
            "runtime 'torch-distributed'",
        ),
        # Slurm
        (f"{SBATCH}#SBATCH --nodes 2\nsrun python train.py\n", "#SBATCH --nodes", 3, NODES),
        (
            f"{SBATCH}#SBATCH --tasks-per-node=2\nsrun x\n",
            "#SBATCH --ntasks-per-node",
            3,
            "starts 2 processes",
        ),
        (f"{SBATCH}#SBATCH --gpus-per-node=8\nx\n", "#SBATCH --gpus-per-node", 3, "8 GPUs besides 2"),
        (f"{SBATCH}#SBATCH --export=DATA=/scratch/x\nx\n", "--export DATA", 3, "no file of the cluster"),
        (f"{SBATCH}#SBATCH hetjob\n#SBATCH -p x\nx\n", "#SBATCH --hetjob", 3, "several machines"),
        (f"{SBATCH}#SBATCH --array=1-3\nx\n", "#SBATCH --array", 3, "several runs"),
        (f"{SBATCH}#SBATCH --container=x\nx\n", "#SBATCH --container", 3, "hardware.image"),
        (f"{SBATCH}#SBATCH --chdir=/work\nx\n", "#SBATCH --chdir", 3, "trainer.code.folder"),
        (f"{SBATCH}#SBATCH --dependency=afterok:1\nx\n", "#SBATCH --dependency", 3, "another job"),
        (f"{SBATCH}#SBATCH --frobnicate=1\nx\n", "#SBATCH --frobnicate", 3, "no such option"),
        (f"{SBATCH}module load cuda\nx\n", "module", 3, "modules"),
        (f"{SBATCH}srun --container-image=a/b x\n", "commands", 3, "changes what the command sees"),
        (f"{SBATCH}singularity exec --nv a.sif x\n", "commands", 3, "containers of a cluster"),
        (
            f"{SBATCH}source ~/venv/bin/activate\nx\n",
            "commands",
            3,
            "~/venv/bin/activate: no file of the cluster",
        ),
        (f"{SBATCH}x --data /scratch/me/data\n", "commands", 3, "/scratch/me/data: no file of the cluster"),
        (f"{SBATCH}x --data $DATA_ROOT\n", "commands $DATA_ROOT", 3, "add DATA_ROOT under environment"),
        (f"{SBATCH}x $SLURM_ARRAY_TASK_ID\n", "commands", 3, "SLURM_ARRAY_TASK_ID is a variable of Slurm"),
        ("#!/usr/bin/env python\n#SBATCH -G 1\nprint()\n", "commands", 1, "not one of sh or bash"),
        ("#!/bin/sh\n#SBATCH -p mi250\n#SBATCH -G 2\nx\n", "#SBATCH --partition", 2, "other accelerators"),
    ],
)
def test_what_would_not_run_as_it_did_is_refused_with_its_line(
    text: str, what: str, line: int, why: str, tree: Path
) -> None:
    found = [
        one
        for one in made_of(text, tree, "given.sh" if "#SBATCH" in text else "given.yaml").impossible
        if one.what.endswith(what) and why in one.why
    ]
    assert [one.line for one in found][:1] == [line]


@pytest.mark.parametrize(
    ("text", "secrets", "environment"),
    [
        (f"{SBATCH}#SBATCH --export=ALL,HF_TOKEN\npython train.py\n", ("HF_TOKEN",), {}),
        (f"{SBATCH}wandb login $WANDB_API_KEY\npython train.py\n", ("WANDB_API_KEY",), {}),
        (
            f"{SBATCH}#SBATCH -c 8\nexport OMP=$SLURM_CPUS_PER_TASK\npython train.py\n",
            (),
            {"SLURM_CPUS_PER_TASK": "8"},
        ),
        (
            f"{SBATCH}for SEED in 1 2; do echo $SEED ${{X:-1}}; done\npython train.py # as in /home/me\n",
            (),
            {},
        ),
        (
            f"{SBATCH}while read -r line; do echo $line; done\nmapfile -t all\necho ${{all[0]}}\npython train.py\n",
            (),
            {},
        ),
        (SKY + "secrets: {WANDB_API_KEY: null}\n", ("WANDB_API_KEY",), {}),
        (JOB % pod(", env: [{name: H, valueFrom: {secretKeyRef: {name: s, key: k}}}]"), ("H",), {}),
        (
            JOB % pod(", env: [{name: A, value: x}, {name: B, value: 'u:$(A):$$(A):$(C)'}]"),
            (),
            {"A": "x", "B": "u:x:$(A):$(C)"},
        ),
        (JOB % pod(", env: [{name: MASTER_ADDR, value: job-0.svc}]"), (), {"MASTER_ADDR": "127.0.0.1"}),
        (
            JOB
            % pod(
                ", env: [{name: I, valueFrom: {fieldRef: {fieldPath: "
                "\"metadata.annotations['batch.kubernetes.io/job-completion-index']\"}}}]"
            ),
            (),
            {"I": "0"},
        ),
    ],
)
def test_variables_that_the_machine_gets_are_no_reason_to_refuse(
    text: str, secrets: tuple[str, ...], environment: dict[str, str], tree: Path
) -> None:
    made = made_of(text, tree, "given.sh" if "#SBATCH" in text else "given.yaml")
    assert made.impossible == ()
    spec = spec_of(made)
    assert (spec.secrets, spec.environment) == (secrets, environment)


def test_the_shortest_time_limit_counts_and_the_index_of_the_only_machine_is_0(tree: Path) -> None:
    limits = "\n      activeDeadlineSeconds: 3600"
    text = JOB % pod(beside=limits).replace("train.py", "train.py, --index, $JOB_COMPLETION_INDEX")
    spec = spec_of(made_of(f"{text}  activeDeadlineSeconds: 7200\n", tree))
    assert (spec.budget.hours, spec.environment) == (1.0, {"JOB_COMPLETION_INDEX": "0"})
    late = JOB % pod(beside="\n      activeDeadlineSeconds: soon")
    assert [one.line for one in made_of(late, tree).impossible] == [8]


def test_a_folder_of_an_image_and_empty_folders_are_there_when_the_command_starts(tree: Path) -> None:
    more = ", workingDir: /app, volumeMounts: [{name: c, mountPath: /cache}, {name: s, mountPath: /dev/shm}]"
    volumes = "\n      volumes: [{name: c, emptyDir: {}}, {name: s, emptyDir: {medium: Memory}}]"
    made = made_of(JOB % pod(more, volumes).replace("train.py", "in_image.py"), tree)
    assert made.impossible == ()
    assert spec_of(made).trainer.command == "mkdir -p /cache\ncd /app\npython in_image.py"


def test_what_the_commands_install_themselves_is_there(tree: Path) -> None:
    setup = "setup: |\n  curl -LsSf https://astral.sh/uv/install.sh | sh\n  uv pip install x\n  sudo apt install openmpi-bin\n"
    made = made_of(f"{setup}run: |\n  mpirun -np 8 x\n  uv run python train.py\n", tree)
    assert made.impossible == ()


def test_tasks_that_no_command_starts_are_only_cores(tree: Path) -> None:
    made = made_of(f"{SBATCH}#SBATCH --ntasks-per-node=48\npython train.py\n", tree, "x.sh")
    assert made.impossible == ()


def test_a_file_that_a_command_before_makes_is_not_missed(tree: Path) -> None:
    made = made_of("run: |\n  git clone https://example.org/x.git\n  cd x\n  python t.py\n", tree)
    assert made.impossible == ()


def test_the_partition_tells_the_kind_of_gpu_if_nothing_else_does(tree: Path) -> None:
    made = made_of("#!/bin/sh\n#SBATCH -p gpu-h100 -G 2\npython train.py\n", tree, "x.sh")
    assert spec_of(made).hardware.gpus == ("H100",)


def test_commands_for_bash_are_run_by_bash(tree: Path) -> None:
    for script in ("a && source b", 'if [ "$X" == "" ]; then a; fi', "cp {a,b} c", "x=$RANDOM", "local y"):
        command = spec_of(made_of(f"run: |\n  {script}\n", tree)).trainer.command
        assert command.startswith("exec bash -c "), script
    for script in ("a && b 2>&1", "a; b || c", 'x --json \'{"a": 1, "b": 2}\''):
        assert spec_of(made_of(f"run: |\n  {script}\n", tree)).trainer.command.format() == script


def test_the_exit_code_is_0_only_if_nothing_is_refused(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("sky.yaml", SKY)
    done = shell.run("import", "sky.yaml", "--usd", "5")
    assert (done.returncode, "it cannot run as it is" in done.stderr) == (0, False)
    shell.write("sky.yaml", f"{SKY}file_mounts: {{/out: {{name: b, mode: MOUNT}}}}\n")
    done = shell.run("import", "sky.yaml", "--usd", "5")
    assert done.returncode == 1
    assert "line 3: file_mounts./out: in the file, a bucket is mounted there" in done.stderr
    assert "checkpoints: {folder: out}, and let the command save there instead of to /out" in done.stderr


@pytest.mark.parametrize("seed", some_of(range(60), one_in=20))
@pytest.mark.parametrize("name", GOOD)
def test_a_damaged_file_is_refused_or_becomes_a_config(name: str, seed: int, tree: Path) -> None:
    """Nothing but UsageError is raised, and what is made can be read."""
    chance = random.Random(f"{name}-{seed}")
    text = GOOD[name]
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(4):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + chance.choice("{}[]:&*!|>'\"%@`\x1b\u2028é\0\t\n$;#=-") + text[at + 1 :]
            case 2:
                text = (
                    text[:at]
                    + chance.choice(["null", "[[1]]", "{a: {b: c}}", "$(", "${A", "<<: *x", "\\"])
                    + text[at:]
                )
            case _:
                text = text[at:] + text[:at]
    try:
        made = made_of(text, tree, "given.sh" if name == "slurm" else "given.yaml")
    except UsageError:
        return
    assert read_text(made.text, "made.yaml").root is not None
    assert all(one.line >= 1 and one.why for one in made.left)
