"""prime-train as it is installed from the wheel of a release deploys what a checkout of the same version
deploys.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import prime_train
from prime_train.aws.code import own, pins, template
from tests.lambdas.deployed import Deployed, code_in
from tests.waiting import HANG_S

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEPLOYS = """
import hashlib, json, sys
import prime_train
from prime_train.aws.code import own, pins, template
names = {name: hashlib.sha256(data).hexdigest() for name, data in own().items()}
print(json.dumps([prime_train.__file__, names, template(), pins().decode()]))
"""
COMMAND = "import sys; from prime_train.cli.main import main; sys.argv[0] = 'prime-train'; main()"


@pytest.fixture(scope="module", name="installed")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with prime-train as pip installs it from the wheel that a release builds. Its
    dependencies are the tests' own.
    """
    folder = tmp_path_factory.mktemp("wheel")
    built = called("-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder), cwd=ROOT)
    wheel = folder / f"prime_train-{prime_train.__version__}-py3-none-any.whl"
    assert wheel.exists(), built
    called(
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(folder / "site"),
        str(wheel),
        cwd=folder,
    )
    return folder / "site"


def called(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    run = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**run, **(env or {})},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    # What pip and an editable installation write about themselves differs, and is used by nobody.
    return {
        name: hashlib.sha256(data).hexdigest() for name, data in files.items() if ".dist-info/" not in name
    }


def test_what_a_wheel_deploys_is_what_a_checkout_deploys(installed: Path, tmp_path: Path) -> None:
    at, names, its_template, its_pins = json.loads(
        called("-c", DEPLOYS, cwd=tmp_path, env={"PYTHONPATH": str(installed)})
    )
    assert Path(at).is_relative_to(installed)
    of_checkout = digests(own())
    assert {name: one for name, one in names.items() if name in of_checkout} == of_checkout
    # The demo's configs and the example's workflows are in other folders of a checkout.
    more = [name for name in names.keys() - of_checkout.keys() if ".dist-info/" not in name]
    assert [
        name for name in more if not name.startswith(("prime_train/demo/", "prime_train/examples/"))
    ] == []
    assert (its_template, its_pins.encode()) == (template(), pins())


@pytest.mark.skipif(sys.platform != "linux", reason="functions run on Linux")
def test_the_command_of_a_wheel_plans_a_deployment_from_any_folder(
    installed: Path, here: Deployed, tmp_path: Path
) -> None:
    words = ["deploy", "--stack", "of-a-wheel", "--dry-run", "--code", str(code_in(tmp_path))]
    said = called("-c", COMMAND, *words, cwd=tmp_path, env={**here.env, "PYTHONPATH": str(installed)})
    assert ["add", "Webhook", "Lambda::Function"] in [line.split() for line in said.splitlines()]
    assert (
        called("-c", COMMAND, "--version", cwd=tmp_path, env={"PYTHONPATH": str(installed)}).strip()
        == f"prime-train {prime_train.__version__}"
    )
