"""A new user: an AWS account, the page's steps, three secrets, one pull request, one run that trains to its
end.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from tests.e2e import aws_steps
from tests.e2e.github_repository import Place, Plane, place
from tests.e2e.prime_plane import python
from tests.e2e.test_github_story import CONFIG, GOOD_RL, RL, STEPS, config
from tests.fakes.aws import aws
from tests.fakes.nvml import Driver
from tests.fakes.prime import FakePrime, needs_sshd
from tests.github.act import needs_act
from tests.lambdas.deployed import Deployed, code_in
from tests.lambdas.test_story import watched
from tests.waiting import await_true

pytestmark = [
    pytest.mark.slow,
    needs_act,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

FEW = 10


@contextmanager
def newcomer(folder: Path, driver: Driver) -> Iterator[tuple[Deployed, aws_steps.Done]]:
    """Carry out the page's steps, and return the stack and their results."""
    folder.mkdir()
    with aws(folder / "aws") as cloud, FakePrime(folder / "prime", running=True) as fake:
        code, image = code_in(folder), python(folder / "python", driver.env)
        provider = {"PRIME_API_BASE_URL": fake.url, "PRIME_TRAIN_POD_PYTHON": str(image)}
        done = aws_steps.carry_out(folder, cloud, code, {"PRIME_API_KEY": fake.api_key}, provider)
        outputs = json.loads((folder / "home" / "aws-prime-train.json").read_text())
        key = done.secrets("gpu")["PRIME_TRAIN_MASTER_KEY"]
        yield Deployed(cloud, fake, {**cloud.env}, outputs, key, done.output, code), done


@pytest.mark.exhaustive
def test_the_pages_steps_lead_to_a_run_that_trains_to_its_end(tmp_path: Path, driver: Driver) -> None:
    with newcomer(tmp_path / "new", driver) as (stack, done):
        assert "well   webhook" in done.output
        assert done.environments == ["gpu", "gpu-watch"]
        assert (set(done.secrets()), set(done.variables)) == ({"PRIME_TRAIN_MARKET_KEY"}, {"PRIME_TRAIN_URL"})
        assert done.variables["PRIME_TRAIN_URL"] == stack.url
        plane = Plane(
            stack.url, stack.key, stack.fake, tmp_path / "new" / "python", stack.logs, stack.cloud.env
        )
        with place(tmp_path, plane) as here:
            here.github.add_user("ann", repo="acme/models", role="write")
            a_pull_request_is_checked_and_priced(
                here, done, config(tmp_path).replace(f"steps: {STEPS}", f"steps: {FEW}")
            )
            with watched(stack):
                a_dispatched_run_trains_to_its_end(here, done)
            what_became_of_it_stands_on_the_pull_request(here, done)
        secrets, reported = (
            {**here.all_secrets(), "the key that rents": stack.fake.api_key},
            here.everything_told() + done.output,
        )
        assert [name for name, secret in secrets.items() if secret in reported] == []


def a_pull_request_is_checked_and_priced(here: Place, done: aws_steps.Done, text: str) -> None:
    here.secrets = done.secrets()
    here.branch("sums")
    here.push({CONFIG: text, RL: GOOD_RL})
    here.github.add_pull("acme/models", "sums", author="ann")
    ran = here.run("validate.yml", "pull_request")
    assert ran.jobs == {"validate": "success"}, ran.reported
    for words in (
        "2x A100_80GB PCIe spot",
        "full run",
        "Budget: ",
        "because no machine of this account was seen yet",
    ):
        assert words in here.comment("validate"), here.comment("validate")


def a_dispatched_run_trains_to_its_end(here: Place, done: aws_steps.Done) -> None:
    """The job only requests the run; the functions rent the machine."""
    here.secrets = done.secrets("gpu")
    ran = here.dispatch("ann", "launch.yml", {"config": CONFIG}, ref="sums")
    assert ran.jobs == {"validate": "success", f"launch {CONFIG}": "success"}, ran.reported
    await_true("it is over", lambda: here.record.run.is_over)
    await_true("no machine is left", lambda: not here.prime.alive)
    run = here.record.run
    assert (run.state, run.durable_step) == (RunState.SUCCEEDED, FEW), run.why


def what_became_of_it_stands_on_the_pull_request(here: Place, done: aws_steps.Done) -> None:
    here.secrets = done.secrets("gpu-watch")
    ran = here.tick()
    assert ran.jobs == {"watch": "success"}, ran.reported
    assert "succeeded" in here.comment("run"), here.comment("run")
