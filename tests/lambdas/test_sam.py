"""The template in AWS's own tool: checked, deployed by its change set, called, deleted."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import requests

from tests.fakes.aws import Aws, aws
from tests.fakes.s3_servers import REGION
from tests.lambdas.deployed import code_in, output, prime_train
from tests.tools import TOOLS, program
from tests.waiting import HANG_S

STACK = "bysam"
SAM = program("sam", TOOLS / "sam" / "bin" / "sam")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SAM is None, reason="there is no sam on PATH, in $SAM or in build/tools: make tools"),
]


def sam(env: dict[str, str], folder: Path, *words: str) -> str:
    done = subprocess.run(
        [str(SAM), *words], env=env, cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, f"sam {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(cloud: Aws, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PRIME_"))}
    homes = {"HOME": str(folder), "PRIME_TRAIN_HOME": str(folder / "home")}
    return {**kept, **cloud.env, **homes, "AWS_DEFAULT_REGION": REGION, "SAM_CLI_TELEMETRY": "0"}


@pytest.mark.exhaustive
def test_what_deploy_saves_is_deployed_by_sam(tmp_path: Path) -> None:
    with aws(tmp_path / "aws") as cloud:
        env, saved, code = environment(cloud, tmp_path), tmp_path / "saved", code_in(tmp_path)
        command = output(env, "deploy", "--save", str(saved), "--code", str(code)).splitlines()[-1].split()
        sam(env, saved, "validate", "--lint", "--region", REGION)
        assert command[:2] == ["sam", "deploy"]
        sam(env, tmp_path, "deploy", *_named(command[2:]), "--no-confirm-changeset", "--no-progressbar")
        outputs = _outputs(cloud)
        assert (
            requests.get(cloud.address_of(outputs["FunctionUrl"]) + "/healthz", timeout=HANG_S).json()[
                "now_s"
            ]
            > 0
        )
        assert "well   stack" in prime_train(env, "doctor", "--stack", STACK).stdout
        words = output(
            env | {"HF_TOKEN": "hf"},
            "deploy",
            "--stack",
            STACK,
            "--yes",
            "--code",
            str(code),
            "--secret",
            "HF_TOKEN",
        )
        assert "the secret has new values of HF_TOKEN" in words
        called = cloud.client("lambda").invoke(FunctionName=outputs["Watcher"], Payload=b'{"news": true}')
        assert {"Sweeps", "Errors"} <= set(json.loads(called["Payload"].read()))
        again = sam(
            env,
            tmp_path,
            "deploy",
            *_named(command[2:]),
            "--no-confirm-changeset",
            "--no-fail-on-empty-changeset",
        )
        assert "Successfully created/updated" in again
        # Not by `sam delete`: ministack does not say whether a stack is protected from it.
        output(env, "destroy", "--stack", STACK, "--yes")
        assert "there is no stack of this name" in prime_train(env, "doctor", "--stack", STACK).stdout


def _named(words: list[str]) -> list[str]:
    """Return the command's words, for a stack of another name."""
    return [
        STACK if before == "--stack-name" else word for before, word in zip(["", *words], words, strict=False)
    ]


def _outputs(cloud: Aws) -> dict[str, str]:
    (stack,) = cloud.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
