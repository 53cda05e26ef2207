"""The steps of docs/aws.md, executed by a shell as written, for a reader who has an AWS account and a key of
the provider.

What a step leaves to the reader, `NAME=...`, is filled in with what such a reader has: their own keys, and
the address that `deploy` printed. AWS is on loopback, so the functions are called at the address and region
where they answer, their code is deployed without its dependencies, and the provider's address is among the
secrets. Questions are answered with yes, the watcher is invoked instead of waiting for its schedule, and the
doctor is called twice because functions start slowly.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.aws import Aws
from tests.fakes.s3_servers import REGION
from tests.lambdas.deployed import BIN
from tests.waiting import HANG_S

DOC = Path(__file__).parents[2] / "docs" / "aws.md"
GH = Path(__file__).parents[1] / "fakes" / "gh"
SECTIONS = ("## Set up in four steps", "## Three secrets, and a pull request")
SHELL = """\
set -euo pipefail
pip() { echo "pip $*"; }
prime-train() {
  case "$*" in
    *--dry-run*) command prime-train "$@" --code "$CODE" ;;
    deploy*)
      command prime-train "$@" --secret PRIME_API_BASE_URL --secret PRIME_TRAIN_POD_PYTHON --yes --code "$CODE" >first-words
      cat first-words >&2
      id=$(sed -n 's,^PRIME_TRAIN_STORE=https://\\([^.]*\\).*,\\1,p' first-words)
      command prime-train deploy --yes --code "$CODE" --public-url "$LOOPBACK/$id" | tee words
      ;;
    doctor) "$PYTHON" -c "$WATCH" && { command prime-train doctor || command prime-train doctor; } ;;
    *) command prime-train "$@" ;;
  esac
}
"""
WATCH = """\
import boto3, os
client = boto3.client("lambda", region_name=os.environ["AWS_REGION"])
client.invoke(FunctionName="prime-train-watcher", Payload=b'{"news": true}')
"""


def blocks() -> list[str]:
    """Return the commands of the page's sections, in order."""
    text = DOC.read_text()
    parts = [text.partition(f"{title}\n")[2].partition("\n## ")[0] for title in SECTIONS]
    assert all(parts), f"{DOC} has other sections than {SECTIONS}"
    return [
        re.sub(r"^ +", "", found, flags=re.MULTILINE)
        for part in parts
        for found in re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
    ]


@dataclass(frozen=True)
class Done:
    """The results. `set_up`: the settings that were made on GitHub."""

    output: str
    set_up: tuple[Mapping[str, str], ...]

    @property
    def variables(self) -> dict[str, str]:
        return {one["name"]: one["body"] for one in self.set_up if one["noun"] == "variable"}

    @property
    def environments(self) -> list[str]:
        return [
            one["name"].rpartition("/")[2]
            for one in self.set_up
            if one["noun"] == "api" and one["method"] == "PUT"
        ]

    def secrets(self, environment: str = "") -> dict[str, str]:
        """Return the secrets that a job sees: those of the repository, and those of its environment."""
        return {
            one["name"]: one["body"]
            for one in self.set_up
            if one["noun"] == "secret" and one["env"] in ("", environment)
        }


def carry_out(
    folder: Path, cloud: Aws, code: Path, has: Mapping[str, str], provider: Mapping[str, str]
) -> Done:
    """Carry out the steps. `has`: what the reader fills in for three dots, by name. `provider`: its address,
    and what its machines contain.
    """
    reported = folder / "gh.jsonl"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PRIME_", "AWS_"))}
    keys = {name: value for name, value in cloud.env.items() if "REGION" not in name}
    (folder / "bin").mkdir()
    (folder / "bin" / "gh").symlink_to(GH)
    env = {
        **own,
        **keys,
        **provider,
        "PATH": os.pathsep.join([str(folder / "bin"), str(BIN), own.get("PATH", os.defpath)]),
        "PRIME_TRAIN_HOME": str(folder / "home"),
        "CODE": str(code),
        "PYTHON": sys.executable,
        "WATCH": WATCH,
        "LOOPBACK": cloud.url + "/_aws/lambda-url",
        "GH_TOLD": str(reported),
    }
    filled = [
        _filled(block, {**has, "PRIME_TRAIN_STORE": "$(sed -n s/^PRIME_TRAIN_STORE=//p words)"})
        for block in blocks()
    ]
    done = subprocess.run(
        ["bash", "-c", SHELL + "\n".join(filled)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    output = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, output
    return Done(output, tuple(json.loads(line) for line in reported.read_text().splitlines()))


def _filled(block: str, has: Mapping[str, str]) -> str:
    """Return the block with names filled in. A name that such a reader does not have shows that the page
    lacks a step.
    """
    return re.sub(
        r"(\w+)=\.\.\.", lambda found: f"{found[1]}={has[found[1]]}", block.replace("eu-central-1", REGION)
    )
