"""What is kept of a trainer's metrics when its attempt ends, and that a profile can be made of it."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_agent.trainer.step_metrics import KEPT_CHARS_MAX, stored_metrics
from prime_train.outputs.metric_rows import MetricRow, metric_rows
from prime_train.spec.spec import ProgressSpec
from prime_train.trainers.of_spec import Progress
from prime_train.trainers.prime_rl.profile.profile import profile
from prime_train.trainers.progress import JsonReader
from tests.agent.attempts import attempt
from tests.builders import spec
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.upstream import upstream_in
from tests.trainers.prime_rl.prime_rl_rows import Pace, rows
from tests.trainers.prime_rl.prime_rl_spec import FOLDER, prime_rl_spec


def test_the_metrics_of_an_attempt_that_has_ended_are_among_its_evidence(tmp_path: Path) -> None:
    git, commits = upstream_in(tmp_path / "upstream")
    wanted = prime_rl_spec(
        part={"ref": commits[-1]},
        hardware={"open_files_min": 256, "disk_gib": 1},
        health={"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
    )
    env = {**git, **uv_in(tmp_path / "bin"), "FAKE_RL_STEP_S": "0.02"}
    with attempt(tmp_path, wanted, files={"rl.toml": b""}, env=env) as here:
        assert here.wait() == 0
        kept = here.evidence("metrics.jsonl").splitlines()
    found = profile(kept)
    assert found.times is not None
    assert (found.times.first_step, found.times.last_step) == (3, 20)
    assert found.diagnosis.title == "rollouts: their tools and environments take long"
    assert not [line for line in kept if "loss/mean" in line and "entropy" in line]


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    file = tmp_path / FOLDER / "metrics.jsonl"
    file.parent.mkdir(parents=True)
    return file


def test_of_very_many_rows_the_newest_are_kept_complete(tmp_path: Path, file: Path) -> None:
    file.write_text("".join(f"{line}\n" for line in rows(Pace(), range(1, 8000))))
    kept = stored_metrics(tmp_path, prime_rl_spec())
    assert KEPT_CHARS_MAX - 1000 < len(kept) <= KEPT_CHARS_MAX
    steps = [json.loads(line)["step"] for line in kept.splitlines()]
    assert steps[-1] == 7999


def test_rows_of_other_trainers_are_kept_as_they_are(tmp_path: Path, file: Path) -> None:
    file.write_text('{"step": 1, "mine": 2}\n')
    assert (
        stored_metrics(tmp_path, spec(trainer={"progress": {"file": f"{FOLDER}/metrics.jsonl"}}))
        == '{"step": 1, "mine": 2}\n'
    )


def test_where_there_are_none_nothing_is_kept(tmp_path: Path) -> None:
    assert stored_metrics(tmp_path, prime_rl_spec()) == ""
    assert stored_metrics(tmp_path, spec()) == ""


def test_a_figure_whose_name_has_a_line_break_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    with closing(MetricsCsv(path, now_s=lambda: 5.0)) as table:
        table.add([Progress(1, 0.5, None, {'a\nb"': 2.0, "lr": 3.0})])
    (row,) = metric_rows(path.read_text().split("\n"))
    assert row == MetricRow(1, 5.0, {"loss": 0.5, 'a\\nb"': 2.0, "lr": 3.0})


def test_a_loss_that_became_nan_is_stored_as_such(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    reader = JsonReader(ProgressSpec())
    with closing(MetricsCsv(path, now_s=lambda: 5.0)) as table:
        table.add(
            filter(
                None,
                map(
                    reader.read,
                    ['{"step": 1, "loss": 2, "lr": 1}', '{"step": 2, "loss": NaN, "lr": Infinity}'],
                ),
            )
        )
    rows = list(metric_rows(path.read_text().split("\n")))
    assert rows == [MetricRow(1, 5.0, {"loss": 2.0, "lr": 1.0}), MetricRow(2, 5.0, {}, ("loss", "lr"))]
