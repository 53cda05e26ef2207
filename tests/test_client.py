"""The Python API, with a real control plane and runs that really train."""

import doctest
import math
from collections.abc import Callable
from pathlib import Path

import pytest

import prime_train
from prime_train import client
from prime_train.client import Client, InvalidConfig, UsageError
from tests.cli.estimates.test_find import ROWS
from tests.e2e.plane import plane, write_config
from tests.fakes.prime import FakePrime


def test_every_example_in_its_documentation_says_what_is_true() -> None:
    results = doctest.testmod(client, optionflags=doctest.ELLIPSIS)
    assert results.attempted >= 6
    assert results.failed == 0


def test_it_is_what_the_package_is_known_for() -> None:
    assert prime_train.Client is Client
    with pytest.raises(AttributeError, match="has no attribute 'Klient'"):
        prime_train.Klient  # noqa: B018


@pytest.mark.slow
def test_a_run_is_launched_followed_looked_at_and_resumed_from_python(tmp_path: Path) -> None:
    with plane(tmp_path, []) as here:
        api = Client(here.home)
        run = api.launch(write_config(tmp_path), name="from-python")
        kinds = [event.kind for event in run.follow(every_s=0.1)]
        assert kinds[0] == "launching"
        assert "succeeded" in kinds
        now = run.status()
        assert (now.state, now.step, now.durable_step, now.attempts) == ("succeeded", 80, 80, 1)
        assert 0 < now.spent_usd < now.budget_usd
        assert [(row["step"], row["complete"]) for row in run.checkpoints()] == [(80, True)]
        assert run.logs()
        assert [one.kind.value for one in run.diagnose().conclusions][:1] == ["finished"]
        assert "<caption>from-python-" in run._repr_html_()
        assert f"<h1>{run.id}" in run.page()
        assert [one.run for one in api.runs()] == [run.id]
        assert api.run("from-python").id == run.id
        with pytest.raises(UsageError, match="stop is not possible"):
            run.stop()
        with pytest.raises(UsageError, match="deadline"):
            run.resume(deadline="tomorrow")
        with pytest.raises(UsageError, match="resume is not possible in this state"):
            run.resume(usd=9)


def test_a_config_with_errors_is_not_launched_and_each_is_named_with_its_line(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, "name: bad\ntrainer: {command: python train.py, steps: -1}\nbudget: {usd: 5}\n"
    )
    api = Client(tmp_path / "home")
    with pytest.raises(InvalidConfig) as caught:
        api.launch(config)
    assert [finding.line for finding in caught.value.findings if "steps" in finding.message] == [2]
    assert caught.value.findings == tuple(one for one in api.validate(config) if one in caught.value.findings)
    assert api.runs() == []


def test_a_config_is_launched_with_values_from_python_in_place_of_its_own(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    api = Client(tmp_path / "home")
    run = api.launch(config, overrides={"trainer.steps": 5, "tags": ["a", "b"], "environment": {"A": "1"}})
    assert (run.status().steps, run.status().tags) == (5, ("a", "b"))
    with pytest.raises(InvalidConfig) as caught:
        api.launch(config, overrides={"trainer.steps": "5", "budget.usd": None})
    assert {finding.file for finding in caught.value.findings if finding.line == 0} == {
        "overrides trainer.steps",
        "overrides budget.usd",
    }
    with pytest.raises(UsageError, match="overrides trainer: a config cannot hold values of type set"):
        api.launch(config, overrides={"trainer": {1}})
    with pytest.raises(UsageError, match=r"'trainer\.' is not a key of a config"):
        api.launch(config, overrides={"trainer.": 1})
    assert [one.run for one in api.runs()] == [run.id]


def test_what_cannot_be_estimated_is_reported_with_the_names_of_arguments(tmp_path: Path) -> None:
    api = Client(tmp_path / "home")
    config = write_config(tmp_path)
    requests: list[tuple[Callable[[], object], str, str]] = [
        (
            lambda: api.memory(model="acme/novel"),
            "acme/novel is unknown",
            "model=7B, or read Hugging Face with hub",
        ),
        (lambda: api.memory(model="8B", gpus=-2), "gpus is -2", "a number from 1 to 1,024"),
        (lambda: api.cost(config, usd_per_hour=math.nan), "usd_per_hour is nan", "a number from 0"),
        (lambda: api.cost(tmp_path / "none.yaml"), "cannot be read as a config", "validate "),
        (api.find, "which model", "model=Qwen/Qwen3-8B, or params=8B"),
        (lambda: api.find(model="8B", gpus=3), "3 GPUs", "1, 2, 4, 8, 16"),
        (lambda: api.find(model="8B", tokens=0), "tokens is 0", "a number from 1"),
    ]
    for request, message, fix in requests:
        with pytest.raises(UsageError, match=message) as caught:
            request()
        assert fix in str(caught.value.fix)
        assert "--" not in f"{caught.value} {caught.value.fix}"
    assert not (tmp_path / "home").exists()


def test_machines_for_rent_are_found_and_priced_from_python(tmp_path: Path) -> None:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        fake.rows = ROWS
        api = Client(
            tmp_path / "home",
            environment={
                "PRIME_API_KEY": fake.api_key,
                "PRIME_API_BASE_URL": fake.url,
                "HOME": str(tmp_path),
            },
        )
        found = api.find(model="Qwen/Qwen3-8B", usd_per_hour_max=20)
    best = found.placement.best
    assert best is not None
    assert (best.offer.gpu, best.offer.gpu_count, best.offer.usd_per_hour, best.offer.spot) == (
        "H100_80GB",
        8,
        9.2,
        True,
    )
    assert all(one.against for one in found.placement.left_out)


def test_a_control_plane_elsewhere_is_named_by_the_environment() -> None:
    api = Client(environment={"PRIME_TRAIN_STORE": "http://127.0.0.1:9", "PRIME_TRAIN_MASTER_KEY": "00" * 32})
    assert repr(api) == "Client('http://127.0.0.1:9')"
    with pytest.raises(client.ExternalError):
        api.runs()


def test_the_client_and_its_errors_are_listed_in_the_package() -> None:
    assert {"Client", "PrimeTrainError"} <= set(dir(prime_train))


def test_whatever_goes_wrong_is_one_family_of_errors(tmp_path: Path) -> None:
    family = prime_train.PrimeTrainError
    for error in (
        client.UsageError,
        client.InvalidConfig,
        client.ExternalError,
        client.TemporaryError,
        client.PermanentError,
    ):
        assert issubclass(error, family)
    config = write_config(
        tmp_path, "name: bad\ntrainer: {command: python train.py, steps: -1}\nbudget: {usd: 5}\n"
    )
    with pytest.raises(family):
        Client(tmp_path).run("none")
    with pytest.raises(family):
        Client(tmp_path).launch(config)


def test_a_list_of_runs_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    api = Client(tmp_path / "home")
    run = api.launch(
        write_config(
            tmp_path, "name: lm\ntrainer: {command: python train.py, steps: 300}\nbudget: {usd: 5}\n"
        )
    )
    assert repr(api.runs()) == f"[<RunStatus {run.id}: queued, step 0/300, $0.00 of $5.00>]"
