"""The action that validates a pull request, run by act on a warm cache: from the start of its step to the
comment.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fakes.github import FakeGitHub
from tests.github import scratch
from tests.github.act import Act, Ran, act_program
from tests.github.workplace import REPO, Workplace

CONFIG = "name: demo\ntrainer:\n  command: python train.py\n  steps: 100\nbudget:\n  usd: 20\n"
ROUNDS = 5
STEPS = {
    "validate": "step to comment",
    "validate/1": "of it, to find it installed",
    "validate/verb": "of it, prime-train",
}


def main(quick: bool = False) -> None:
    console = Console()
    if act_program() is None:
        console.print("skipped: there is no act on PATH, in $ACT or in ~/go/bin")
        return
    with tempfile.TemporaryDirectory() as folder, pull_request(Path(folder)) as workplace:
        rounds = [validated(workplace) for _ in range(1 if quick else ROUNDS)]
    table = Table("", "median, s", "worst, s")
    for place, name in STEPS.items():
        took_s = [ran.step("validate", place).took_s for ran in rounds]
        table.add_row(name, f"{statistics.median(took_s):.2f}", f"{max(took_s):.2f}")
    console.print(table)


@contextmanager
def pull_request(folder: Path) -> Iterator[Workplace]:
    program = act_program()
    assert program
    project = scratch.product(folder / "project", has_code=False)
    installed = scratch.warm(folder / "warm" / "prime-train", project)
    with FakeGitHub(running=True) as github:
        workplace = Workplace(
            github, Act(program, folder / "act", scratch.folders(project)), installed, folder / "models"
        )
        workplace.branch("change")
        workplace.push({"configs/demo.yaml": CONFIG})
        github.add_pull(REPO, "change", author="octocat")
        yield workplace


def validated(workplace: Workplace) -> Ran:
    ran = workplace.run("validate.yml", "pull_request")
    assert ran.jobs == {"validate": "success"}, ran.reported
    return ran


if __name__ == "__main__":
    main()
