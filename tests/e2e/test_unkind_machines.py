"""The config of the example repository on machines as they are rented: its Python is where a session over SSH
does not find it, refuses installations, has no pip, or is missing. It installs its requirements, trains,
loses its machine, and ends on the next one.
"""

import json
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.e2e.plane import Plane, plane
from tests.e2e.rentals import PROVIDERS, USUAL
from tests.fakes.machine_images import CONDA, NO_PYTHON, UBUNTU_22_04, UBUNTU_24_04, Image
from tests.fakes.prime import needs_sshd
from tests.waiting import await_true

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "consumer-repo" / "configs" / "mnist.yaml"
STEPS, SAVE_EVERY = 30, 10

TRAINER = """\
import argparse, json, os, pathlib, shutil, time
import tiny  # installed by the config's setup
asked = argparse.ArgumentParser()
asked.add_argument("--out")
asked.add_argument("--progress")
asked.add_argument("--resume-step", type=int, default=0)
asked = asked.parse_args()
assert shutil.which("pip"), "there is no pip"
pathlib.Path("SEEN").write_text(json.dumps(dict(os.environ)))
for step in range(asked.resume_step + 1, STEPS + 1):
    while step == STEPS - 1 and not pathlib.Path("MAY_END").exists():
        time.sleep(0.05)
    time.sleep(0.02)
    with open(asked.progress, "a") as progress:
        progress.write(json.dumps({"step": step, "loss": tiny.LOSS / step}) + chr(10))
    if step % SAVE_EVERY == 0:
        folder = pathlib.Path(asked.out) / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_text("x" * 100)
        (folder / "COMPLETE").touch()
"""


def written(folder: Path) -> Path:
    """Write the working tree, and the example's config with what a machine of the tests cannot have
    changed.
    """
    tree = folder / "tree"
    tree.mkdir()
    with zipfile.ZipFile(tree / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "LOSS = 3.0\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(
            "tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    (tree / "requirements.txt").write_text("./tiny-1.0-py3-none-any.whl\n")
    program = (
        TRAINER.replace("SAVE_EVERY", str(SAVE_EVERY))
        .replace("STEPS", str(STEPS))
        .replace("MAY_END", str(folder / "may-end"))
    )
    program = program.replace("SEEN", str(folder / "seen.json"))
    (tree / "train.py").write_text(program)
    config = yaml.safe_load(EXAMPLE.read_text())
    config["trainer"] |= {"steps": STEPS, "code": {"folder": str(tree)}}
    config["hardware"] = {"spot": "never", "disk_gib": 1, "open_files_min": 256}
    config["checkpoints"] |= {"every_steps": SAVE_EVERY}
    config["rehearsed"] = "waived"  # its script is made here
    config["health"] = {
        "heartbeat_s": 1,
        "overdue_s": 12,
        "silence_s": 120,
        "first_heartbeat_s": 240,
        "first_step_s": 240,
        "settle_s": 3,
    }
    (folder / "mnist.yaml").write_text(yaml.safe_dump(config))
    return folder / "mnist.yaml"


RARE = [
    ("runpod", CONDA),
    ("runpod", UBUNTU_24_04),
    ("runpod", UBUNTU_22_04),
    ("runpod", NO_PYTHON),
    ("vast", NO_PYTHON),
]
STORIES = [
    *(pytest.param(name, image, id=f"{name} {image.name}") for name, image in USUAL.items()),
    *(
        pytest.param(name, image, id=f"{name} {image.name}", marks=pytest.mark.exhaustive)
        for name, image in RARE
    ),
]


@pytest.mark.parametrize(("name", "image"), STORIES)
def test_the_examples_config_trains_to_its_end_on_a_rented_machine_and_loses_one(
    name: str, image: Image, tmp_path: Path
) -> None:
    with PROVIDERS[name](tmp_path, image) as rented:
        settings = {**rented.settings, "PRIME_TRAIN_POD_PYTHON": sys.executable}
        with plane(tmp_path / "plane", settings=settings) as here:
            run_id = here.launch(written(tmp_path))
            await_true(
                "a checkpoint is durable",
                lambda: here.run(run_id).is_over or _committed(here, run_id) >= SAVE_EVERY,
            )
            rented.take(_pod(here, run_id))
            (tmp_path / "may-end").touch()
            await_true("it is over", lambda: here.run(run_id).is_over)
            await_true("no machine is left", lambda: not rented.alive())
            run = here.run(run_id)
            assert (run.state, run.durable_step) == (RunState.SUCCEEDED, STEPS), (
                f"{run.why}\n{here.evidence()}"
            )
            assert Cause.SETUP_FAILED not in [attempt.cause for attempt in run.attempts]
            assert [attempt.offer.provider for attempt in run.attempts] == [name] * 2
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert {key: value for key, value in seen.items() if key in image.env} == image.for_runs
    assert seen["HOME"].startswith(str(tmp_path / "rented"))


def _committed(here: Plane, run_id: str) -> int:
    record = here.store.load(run_id)
    return (record.lease.committed_step or 0) if record is not None else 0


def _pod(here: Plane, run_id: str) -> str:
    attempt = here.run(run_id).current_attempt
    assert attempt is not None
    assert attempt.pod_id is not None
    return attempt.pod_id.partition("/")[2]
