"""The validate action in act, from its first step to the comment: in total, the installation, and
prime-train's own process.

A hosted runner starts with nothing installed, so the action installs from uv's cache, and Python compiles
what the process loads; a self-hosted runner has it all installed already. Fetching uv and the repository is
the work of other actions, and not included; neither is the start of act.
"""

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fakes.github import FakeGitHub
from tests.fakes.prime import SPOT_BOX, FakePrime
from tests.github import scratch
from tests.github.act import Act, act_program
from tests.github.files import ROOT
from tests.github.test_setup import fetching, with_uv
from tests.github.workplace import REPO, Workplace

WHOLE_S_MAX, OURS_S_MAX = 10.0, 1.0
CONFIG = "configs/qwen3-4b-full.yaml"
RL = "configs/qwen3-4b-full/rl.toml"
PARTS = {"whole action": "", "installing": "/1", "our process": "/verb"}


@dataclass
class Pull:
    """A pull request with one config for two GPUs, which has a price."""

    here: Workplace
    pushes: int = 0

    def push(self, env: Mapping[str, str]) -> dict[str, float]:
        """Push a change that changes the comment. Return the seconds of each part."""
        self.pushes += 1
        text = (ROOT / CONFIG).read_text().replace("usd: 50", f"usd: {50 + self.pushes}")
        self.here.push({CONFIG: text, RL: (ROOT / RL).read_text()})
        github = self.here.github
        if self.pushes == 1:
            github.add_pull(REPO, "change", author="octocat")
        event = [each["payload"] for each in github.events() if each["name"] == "pull_request"][-1]
        here = self.here
        reported = {"api_url": github.url, "secrets": here.secrets, "variables": here.variables, "env": env}
        ran = here.act.run(here.folder, "validate.yml", "pull_request", event, **reported)  # type: ignore[arg-type]
        assert ran.jobs == {"validate": "success"}, ran.reported
        (stated,) = github.comments(REPO, 1)
        assert f"{50 + self.pushes}.00" in stated["body"], stated["body"]
        return {part: ran.step("validate", f"validate{place}").took_s for part, place in PARTS.items()}


@contextmanager
def pull(folder: Path, act: Act) -> Iterator[tuple[Pull, dict[str, str]]]:
    """Create the pull request, with the variables that lead to the fake provider."""
    with (
        FakeGitHub(running=True) as github,
        FakePrime(folder / "prime", running=True, machines=False) as prime,
    ):
        prime.rows = [SPOT_BOX.model_copy(update={"gpuCount": 2}).priced(3.1)]
        here = Workplace(github, act, Path(), folder / "models")
        here.secrets["PRIME_TRAIN_OFFERS_KEYS"] = json.dumps({"PRIME_API_KEY": prime.api_key})
        here.branch("change")
        yield Pull(here), {"PRIME_API_BASE_URL": prime.url}
        assert github.violations == []


def measured(folder: Path, count: int) -> dict[str, list[dict[str, float]]]:
    """Return the measurements, by the state of the runner."""
    project = scratch.product(folder / "project", has_code=True)
    installed = scratch.warm(folder / "installed" / "prime-train", project)
    act = with_uv(Act(str(act_program()), folder / "act", scratch.folders(project)), folder / "programs")
    with pull(folder, act) as (here, env):
        here.push(fetching() | env)  # fills uv's cache
        anew = [here.push(fetching() | env) for _ in range(count)]
        return {
            "installed anew": anew,
            "installed already": [here.push({scratch.WARM: str(installed)} | env) for _ in range(count)],
        }


def main(quick: bool = False) -> None:
    console = Console()
    if act_program() is None:
        console.print("skipped: there is no act")
        return
    with tempfile.TemporaryDirectory() as name:
        found = measured(Path(name), 3 if quick else 10)
    table = Table(
        "seconds", *(f"{state}: {which}" for state in found for which in ("median", "most")), "allowed"
    )
    for part, allowed in zip(PARTS, (f"{WHOLE_S_MAX:g}", "", f"{OURS_S_MAX:g}"), strict=True):
        times = [[one[part] for one in rounds] for rounds in found.values()]
        table.add_row(
            part,
            *(f"{value:.2f}" for each in times for value in (statistics.median(each), max(each))),
            allowed,
        )
    console.print(table)


if __name__ == "__main__":
    main()
