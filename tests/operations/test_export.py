"""A config as a task of SkyPilot, Kubernetes or dstack, read by these tools' own code where it is installed,
and run on machines.
"""

import base64
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
import yaml

from prime_train.buckets.keys import task_run_key, task_used_key, task_used_prefix
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader, point_of
from prime_train.checkpoints.restore import restore
from prime_train.demo.train import load_checkpoint, load_corpus
from prime_train.errors import UsageError
from prime_train.interop.export.skypilot import accelerator
from prime_train.interop.export.task import kubernetes_text
from prime_train.interop.export.used import used_before
from prime_train.runs.run import Totals
from tests.cli.shell import Shell
from tests.fakes.openapi.schemas import unknown
from tests.tools import TOOLS, program
from tests.waiting import HANG_S, await_true

SKYPILOT = program("skypilot-python", TOOLS / "skypilot" / "bin" / "python")
DSTACK = program("dstack-python", TOOLS / "dstack" / "bin" / "python")
FORMATS = {"skypilot": "task.yaml", "kubernetes": "job.yaml", "dstack": "task.dstack.yml"}
SECRET = "hf_NobodyMayReadThis"
GPUS = """\
name: full
trainer: {command: python train.py $(nproc) $$, steps: 10, code: {folder: TREE}}
hardware: {gpus: [H100_80GB, A100_80GB], count: 4, disk_gib: 200, usd_per_hour_max: 9.5, spot: prefer}
health: {drain_s: 100}
secrets: [HF_TOKEN]
alerts: {webhook: ALERTS_URL}
budget: {usd: 5}
"""
MARK = "TASK_MACHINE"
"""A variable of all processes of a machine, by which they are found."""
STEPS = 40
TRAINING = """\
name: small
trainer:
  command: python -m prime_train.demo.train --steps 40 --save-every 10 --step-seconds 0.2 --out out --progress progress.jsonl --batch-size 8
  steps: 40
  resume: --resume-step {step}
  code: {folder: TREE}
  progress: {file: progress.jsonl}
checkpoints: {folder: out/checkpoints, sentinel: COMPLETE}
hardware: {open_files_min: 256, disk_gib: 1}
health: {heartbeat_s: 1, overdue_s: 10, silence_s: 20, settle_s: 5, drain_s: 20}
budget: {usd: 5}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "train.py").write_text("print('trained')\n")
    return Shell(tmp_path)


def exported(shell: Shell, kind: str, text: str = GPUS, *more: str, **env: str) -> tuple[Path, str]:
    """Export a config, and return the folder and what was printed."""
    config = shell.here / "config.yaml"
    config.write_text(text.replace("TREE", str(shell.here / "tree")))
    bucket = {
        "PRIME_TRAIN_BUCKET": "s3://bucket/prefix",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": SECRET,
    }
    done = shell.run(
        "export",
        str(config),
        "--format",
        kind,
        "--output",
        kind,
        *more,
        **(bucket | {"HF_TOKEN": SECRET} | env),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return shell.here / kind, done.stdout


def documents(folder: Path) -> list[Any]:
    (main,) = folder.glob("*.y*ml")
    # the other one takes seconds for what is in ConfigMaps
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(main.read_text(), loader))


@pytest.mark.parametrize("kind", FORMATS)
def test_secrets_are_named_and_never_written(kind: str, shell: Shell) -> None:
    folder, said = exported(shell, kind)
    assert (folder / FORMATS[kind]).exists()
    main = (folder / FORMATS[kind]).read_text()
    for name in ("HF_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ALERTS_URL"):
        assert name in main
        assert name in said
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in content
    assert base64.b64encode(SECRET.encode()) not in content
    assert "AWS_REGION" in main, "where the bucket is, is no secret"


def test_the_same_training_is_the_same_task_in_every_format_and_another_one_is_not(shell: Shell) -> None:
    names = {exported(shell, kind)[1].split("task ")[1].split()[0] for kind in FORMATS}
    assert len(names) == 1, "what was exported before is no part of the code"
    (shell.here / "tree" / "train.py").write_text("print('changed')\n")
    said = exported(shell, "skypilot", GPUS, "--output", "again")[1]
    assert said.split("task ")[1].split()[0] not in names


def test_exported_tasks_in_the_working_tree_are_no_part_of_the_code(shell: Shell) -> None:
    before = exported(shell, "skypilot", GPUS, "--output", "tree/one")[1]
    after = exported(shell, "skypilot", GPUS, "--output", "tree/two")[1]
    assert before.replace("one", "two") == after


def test_skypilot_gets_the_machines_in_the_order_of_preference(shell: Shell) -> None:
    (task,) = documents(exported(shell, "skypilot")[0])
    choices = [(one["accelerators"], one["use_spot"]) for one in task["resources"]["ordered"]]
    assert choices == [("H100:4", True), ("A100-80GB:4", True), ("H100:4", False), ("A100-80GB:4", False)]
    assert (task["resources"]["disk_size"], task["resources"]["max_hourly_cost"]) == (200, 9.5)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("A100_40GB", "A100"), ("A100_80GB", "A100-80GB"), ("RTX4090_24GB", "RTX4090"), ("L40S_48GB", "L40S")],
)
def test_skypilot_has_names_of_its_own_for_gpus(kind: str, name: str) -> None:
    assert accelerator(kind) == name


def test_a_job_replaces_pods_that_were_taken_away_and_not_those_that_failed(shell: Shell) -> None:
    *maps, job = documents(exported(shell, "kubernetes")[0])
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Ignore", "FailJob"]
    assert (spec["podReplacementPolicy"], pod["restartPolicy"]) == ("Failed", "Never")
    assert pod["terminationGracePeriodSeconds"] > 100, "health.drain_s, and some time to leave"
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert all(len(yaml.safe_dump(one)) < 2**20 for one in maps), "an object may have 1 MiB"


KUBERNETES = json.loads((Path(__file__).parents[1] / "data" / "kubernetes" / "openapi.json").read_text())
SCHEMAS = {
    "ConfigMap": {"$ref": "#/components/schemas/io.k8s.api.core.v1.ConfigMap"},
    "Job": {"$ref": "#/components/schemas/io.k8s.api.batch.v1.Job"},
}


def refuse_as_kubectl(thing: Any) -> None:
    """Refuse what `kubectl apply --validate=strict` refuses: what the description of the API does not allow,
    and fields that it lacks.
    """
    schema = SCHEMAS[thing["kind"]]
    jsonschema.validate(thing, {**schema, "components": KUBERNETES["components"]})
    assert list(unknown(KUBERNETES, schema, thing)) == []


def test_a_job_mounts_the_claims_of_the_config_and_other_tools_are_left_to_mount_them(shell: Shell) -> None:
    mounting = GPUS.replace(
        "hardware: {", "hardware: {provider: kubernetes, volumes: {/data: {name: sets, sub_path: web}}, "
    )
    folder, said = exported(shell, "kubernetes", mounting)
    *_, job = documents(folder)
    pod = job["spec"]["template"]["spec"]
    assert {"name": "volume-0", "persistentVolumeClaim": {"claimName": "sets", "readOnly": True}} in pod[
        "volumes"
    ]
    assert {"name": "volume-0", "mountPath": "/data", "readOnly": True, "subPath": "web"} in pod[
        "containers"
    ][0]["volumeMounts"]
    refuse_as_kubectl(job)
    assert "hardware.volumes are not exported" not in said
    said = exported(shell, "dstack", mounting, "--output", "again")[1]
    assert "hardware.volumes are not exported: let the other tool mount the same data at /data" in said


@pytest.mark.parametrize("text", [GPUS, TRAINING], ids=["gpus", "cpu"])
def test_kubectl_would_accept_what_is_exported(text: str, shell: Shell) -> None:
    found = documents(exported(shell, "kubernetes", text)[0])
    assert {thing["kind"] for thing in found} == set(SCHEMAS)
    for thing in found:
        refuse_as_kubectl(thing)
    container = found[-1]["spec"]["template"]["spec"]["containers"][0]
    container["commnad"] = []
    with pytest.raises(AssertionError, match=r"spec\.template\.spec\.containers\[0\]\.commnad"):
        refuse_as_kubectl(found[-1])
    container["command"] = "not a list"
    with pytest.raises(jsonschema.ValidationError):
        refuse_as_kubectl(found[-1])


@pytest.mark.parametrize(
    ("text", "expected"), [("a $$ b", "a $$$ b"), ("$(nproc) $HOME", "$$(nproc) $HOME"), ("$5", "$5")]
)
def test_kubernetes_expands_nothing_of_a_text(text: str, expected: str) -> None:
    assert kubernetes_text(text) == expected


def read_by(python: str | None, script: str, folder: Path) -> str:
    """Return what a script of another tool's Python prints, in the task's folder."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(
        [str(python), "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SKYPILOT_NOT_HERE = "there is no Python with SkyPilot in $SKYPILOT_PYTHON or in build/tools: make tools"
READ_BY_SKYPILOT = """
import json, yaml, sky
given = yaml.safe_load(open("task.yaml"))
task = sky.Task.from_yaml_config(given, secrets_overrides=[(name, "x") for name in given.get("secrets", {})])
task.expand_and_validate_file_mounts()
machines = task.resources if isinstance(task.resources, list) else [*task.resources]
print(json.dumps({
    "name": task.name, "secrets": sorted(task.secrets),
    "machines": [[one.accelerators, one.use_spot, one.disk_size, one.max_hourly_cost] for one in machines],
}))
"""


@pytest.mark.skipif(SKYPILOT is None, reason=SKYPILOT_NOT_HERE)
@pytest.mark.parametrize("text", [GPUS, TRAINING], ids=["gpus", "cpu"])
def test_skypilot_itself_reads_the_task(text: str, shell: Shell) -> None:
    found = json.loads(read_by(SKYPILOT, READ_BY_SKYPILOT, exported(shell, "skypilot", text)[0]))
    kinds: list[dict[str, int] | None] = [{"H100": 4}, {"A100-80GB": 4}] if text is GPUS else [None]
    disk_gb, usd = (200, 9.5) if text is GPUS else (64, None)
    assert found["machines"] == [[kind, spot, disk_gb, usd] for spot in (True, False) for kind in kinds]
    assert found["name"].startswith(f"{text.split()[1]}-")
    assert {"AWS_ACCESS_KEY_ID", *(("HF_TOKEN", "ALERTS_URL") if text is GPUS else ())} <= set(
        found["secrets"]
    )


@pytest.mark.skipif(SKYPILOT is None, reason=SKYPILOT_NOT_HERE)
def test_skypilot_refuses_a_task_with_a_field_that_it_lacks(shell: Shell) -> None:
    folder, _ = exported(shell, "skypilot", TRAINING)
    with (folder / "task.yaml").open("a") as file:
        file.write("\nmachines: 1\n")
    with pytest.raises(AssertionError, match="machines"):
        read_by(SKYPILOT, READ_BY_SKYPILOT, folder)


DSTACK_NOT_HERE = "there is no Python with dstack in $DSTACK_PYTHON or in build/tools: make tools"
READ_BY_DSTACK = """
import json, yaml
from dstack._internal.core.models.configurations import parse_run_configuration
task = parse_run_configuration(yaml.safe_load(open("task.dstack.yml")))
gpu = task.resources.gpu
machine = [gpu.name, gpu.count.min, gpu.memory and gpu.memory.min, task.resources.disk.size.min, task.max_price]
print(json.dumps({"name": task.name, "type": task.type, "env": sorted(task.env), "spot": task.spot_policy, "machine": machine}))
"""


@pytest.mark.skipif(DSTACK is None, reason=DSTACK_NOT_HERE)
@pytest.mark.parametrize("text", [GPUS, TRAINING], ids=["gpus", "cpu"])
def test_dstack_itself_reads_the_task(text: str, shell: Shell) -> None:
    found = json.loads(read_by(DSTACK, READ_BY_DSTACK, exported(shell, "dstack", text)[0]))
    assert found["machine"] == (
        [["H100", "A100"], 4, 72, 200, 9.5] if text is GPUS else [None, 0, None, 1, None]
    )
    assert (found["type"], found["spot"]) == ("task", "auto")
    assert found["name"].startswith(f"{text.split()[1]}-")
    assert {"AWS_ACCESS_KEY_ID", *(("HF_TOKEN", "ALERTS_URL") if text is GPUS else ())} <= set(found["env"])


@pytest.mark.skipif(DSTACK is None, reason=DSTACK_NOT_HERE)
def test_dstack_refuses_a_task_with_a_field_that_it_lacks(shell: Shell) -> None:
    folder, _ = exported(shell, "dstack", TRAINING)
    with (folder / "task.dstack.yml").open("a") as file:
        file.write("\nmachines: 1\n")
    with pytest.raises(AssertionError, match="machines"):
        read_by(DSTACK, READ_BY_DSTACK, folder)


def test_a_bucket_that_no_other_machine_reaches_is_refused(shell: Shell) -> None:
    shell.write("c.yaml", GPUS.replace("TREE", str(shell.here / "tree")))
    done = shell.run("export", "c.yaml", "--format", "skypilot")
    assert done.returncode == 2
    assert "set PRIME_TRAIN_BUCKET" in done.stderr


def test_a_folder_that_is_there_already_is_not_changed(shell: Shell) -> None:
    folder, _ = exported(shell, "skypilot")
    (folder / "task.yaml").write_text("mine")
    done = shell.run(
        "export", "config.yaml", "--format", "skypilot", "--output", "skypilot", PRIME_TRAIN_BUCKET="s3://b"
    )
    assert done.returncode != 0
    assert "already exists" in done.stderr
    assert (folder / "task.yaml").read_text() == "mine"


def test_what_names_no_image_is_refused(shell: Shell) -> None:
    shell.write("c.yaml", GPUS.replace("TREE", str(shell.here / "tree")))
    done = shell.run(
        "export", "c.yaml", "--format", "dstack", "--image", "two words", PRIME_TRAIN_BUCKET="s3://b"
    )
    assert done.returncode == 2
    assert "'two words' names no image" in done.stderr


def test_a_config_with_errors_is_not_exported(shell: Shell) -> None:
    shell.write("c.yaml", "name: x\n")
    done = shell.run("export", "c.yaml", "--format", "dstack", PRIME_TRAIN_BUCKET="s3://b")
    assert done.returncode == 1
    assert "PT" in done.stdout + done.stderr
    assert not (shell.here / "x-dstack").exists()


def digest(checkpoints: Path) -> str:
    return load_checkpoint(checkpoints, STEPS, len(load_corpus()[2])).digest()


class Machines:
    """The machines of an exported task: processes, each with a disk of its own."""

    def __init__(self, shell: Shell, url: str) -> None:
        self._folder = shell.here
        self._env = shell.env | {"PRIME_TRAIN_BUCKET": url, "HF_TOKEN": SECRET}

    def start(self, task: Path, disk: str) -> "subprocess.Popen[str]":
        # As the script that the task brings along does it, which installs what is here already.
        command = [
            "sh",
            str(task / "files" / "bring_up.sh"),
            "alone",
            "-",
            "digest",
            sys.executable,
            "/opt/none",
        ]
        with self.log(disk).open("w") as log:
            env = self._env | {MARK: str(self._folder / disk)}
            return subprocess.Popen(
                [*command, str(task / "files"), str(self._folder / disk)],
                env=env,
                stdout=log,
                stderr=log,
                text=True,
            )

    def log(self, disk: str) -> Path:
        return self._folder / f"{disk}.log"

    def kill(self, disk: str) -> None:
        """End every process of the machine at once, as when its power fails."""
        while victims := [process for process in psutil.process_iter() if self._is_of(process, disk)]:
            for process in victims:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(victims)

    def _is_of(self, process: psutil.Process, disk: str) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(
                self._folder / disk
            )
        except psutil.Error:
            return False


def used_in(bucket: Bucket, task: str) -> dict[str, float]:
    """Return the sum of what the machines of the task have noted."""
    notes = [bucket.get(stat.key) for stat in bucket.list(task_used_prefix(task))]
    figures = [json.loads(note.data) for note in notes if note is not None]
    return {name: sum(each[name] for each in figures) for name in ("paid_s", "useful_s", "usd")}


def newest_step(bucket: Bucket, task: str, number: int) -> int:
    """Return the step of the newest complete checkpoint of the task's machine with this number; 0: it has
    none.
    """
    run = bucket.get(task_run_key(task, number))
    complete = Reader(bucket, run.data.decode()).catalog().complete() if run is not None else []
    return complete[0].step if complete else 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("limit", ["hours", "usd"])
def test_the_budget_is_that_of_all_machines_of_a_task_however_they_end(
    limit: str, shell: Shell, tmp_path: Path
) -> None:
    url = (tmp_path / "bucket").as_uri()
    long = TRAINING.replace("--steps 40", "--steps 4000").replace("steps: 40", "steps: 4000")
    price = ("--usd-per-hour", "3600")
    ample = exported(
        shell, "skypilot", long.replace("usd: 5", "usd: 100000, hours: 9"), *price, PRIME_TRAIN_BUCKET=url
    )
    task = ample[1].split("task ")[1].split()[0]
    assert "budget.usd, $100,000.00, is kept at $3,600.00 for each hour of a machine" in ample[1]
    (tmp_path / "bucket").mkdir()
    bucket, machines = open_bucket(url, {}), Machines(shell, url)
    for number, disk in enumerate(("one", "two"), start=1):
        machine = machines.start(ample[0], disk)

        def has_trained() -> bool:
            assert machine.poll() is None, machines.log(disk).read_text()  # noqa: B023
            return newest_step(bucket, task, number) > newest_step(bucket, task, number - 1)  # noqa: B023

        await_true(f"machine {disk} has a checkpoint of its own", has_trained)
        before = used_in(bucket, task)
        await_true("its note is renewed", lambda: used_in(bucket, task)["useful_s"] > before["useful_s"])  # noqa: B023
        machines.kill(disk)
        machine.wait(HANG_S)
    killed = used_in(bucket, task)
    assert killed["usd"] == pytest.approx(killed["paid_s"])
    assert killed["paid_s"] > killed["useful_s"] > 0

    left = {
        "hours": f"usd: 100000, hours: {(killed['useful_s'] + 6) / 3600}",
        "usd": f"usd: {(killed['usd'] + 20) / 0.95}",
    }[limit]
    said = exported(
        shell, "skypilot", long.replace("usd: 5", left), *price, "--output", "short", PRIME_TRAIN_BUCKET=url
    )[1]
    short = shell.here / "short"
    assert f"task {task}\n" in said, "with another budget it is the same training"
    third = machines.start(short, "three")
    assert third.wait(HANG_S) == 1, machines.log("three").read_text()
    assert {"hours": "of training are spent", "usd": "is spent"}[limit] in machines.log("three").read_text()
    assert "upload" not in machines.log("three").read_text().splitlines()[-1], "what it saved is durable"
    after, saved = used_in(bucket, task), newest_step(bucket, task, 3)
    assert saved >= newest_step(bucket, task, 2) > 0
    assert after["paid_s"] > killed["paid_s"]

    fourth = machines.start(short, "four")
    assert fourth.wait(HANG_S) == 1
    assert f"{task} is not continued: the budget" in machines.log("four").read_text()
    assert bucket.get(task_run_key(task, 4)) is None, "nothing was launched"


def test_a_task_without_a_price_says_that_dollars_are_not_limited_and_how_to(shell: Shell) -> None:
    said = exported(shell, "kubernetes", TRAINING)[1]
    assert "dollars are not limited, because no price is known" in said
    assert "to limit them, set hardware.usd_per_hour_max, or give --usd-per-hour" in said
    assert "is kept at $9.50 for each hour" in exported(shell, "kubernetes", GPUS, "--output", "priced")[1]


def test_a_note_that_is_none_is_not_taken_for_an_unspent_budget(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    bucket = open_bucket((tmp_path / "bucket").as_uri(), {})
    bucket.put(task_used_key("small-1", 1), b'{"paid_s": 3, "useful_s": 2, "usd": 0.5}')
    assert used_before(bucket, "small-1") == Totals(attempts=1, paid_s=3, useful_s=2, usd=0.5)
    too_many = b'{"paid_s": 1e999, "useful_s": 1, "usd": 1}'
    for text in (b"", b"[]", b'{"paid_s": 1}', b'{"paid_s": 1, "useful_s": 1, "usd": null}', too_many):
        bucket.put(task_used_key("small-1", 2), text)
        with pytest.raises(UsageError, match="is not one of what a machine has used"):
            used_before(bucket, "small-1")


@pytest.mark.exhaustive
def test_machines_of_a_task_follow_each_other_to_the_same_end_as_without_interruption(
    shell: Shell, tmp_path: Path
) -> None:
    url = (tmp_path / "bucket").as_uri()
    folder, said = exported(shell, "skypilot", TRAINING, PRIME_TRAIN_BUCKET=url)
    task = said.split("task ")[1].split()[0]
    machines = Machines(shell, url)
    first = machines.start(folder, "one")
    log = machines.log("one")
    await_true(
        "the first machine trains", lambda: first.poll() is not None or "training at step" in log.read_text()
    )
    first.send_signal(signal.SIGTERM)
    assert first.wait(HANG_S) == 128 + signal.SIGTERM, log.read_text()
    bucket = open_bucket(url, {})
    started = bucket.get(task_run_key(task, 1))
    assert started is not None
    saved = Reader(bucket, started.data.decode()).catalog().complete()[0].step
    assert 0 < saved < STEPS, "it saved when it was told to end"

    second = machines.start(folder, "two")
    assert second.wait(HANG_S) == 0, machines.log("two").read_text()
    assert f"starts from step {saved} of" in machines.log("two").read_text()
    third = machines.start(folder, "three")
    assert third.wait(HANG_S) == 0
    assert "has succeeded before" in machines.log("three").read_text()

    ended = bucket.get(task_run_key(task, 2))
    assert ended is not None
    assert bucket.get(task_run_key(task, 3)) is None
    newest = Reader(bucket, ended.data.decode()).catalog().complete()[0]
    restore(bucket, ended.data.decode(), point_of(newest), tmp_path / "restored")
    command = [
        sys.executable,
        "-m",
        "prime_train.demo.train",
        "--steps",
        str(STEPS),
        "--save-every",
        "10",
        "--batch-size",
        "8",
    ]
    subprocess.run(
        [*command, "--out", str(tmp_path / "alone")], check=True, capture_output=True, timeout=HANG_S
    )
    assert digest(tmp_path / "restored") == digest(tmp_path / "alone" / "checkpoints")
