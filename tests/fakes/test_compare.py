"""A fake is held against the record of a drill."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.compare import main, played
from tests.fakes.runpod import FakeRunPod


def otherwise(fake: FakeRunPod, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Let the fake describe its pods in another way, as the real provider might."""
    shown = fake.shown
    fake.is_checked = False
    fake.shown = lambda pod: change(shown(pod))  # type: ignore[method-assign]  # this is the real provider here


def written(folder: Path, change: Callable[[FakeRunPod], None] = lambda fake: None) -> str:
    path = folder / "drill-runpod.json"
    path.write_text(json.dumps({"provider": "runpod", "answers": played("runpod", change)}))
    return str(path)


def test_nothing_differs_where_the_provider_answers_as_its_fake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([written(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("nothing differs")


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda pod: {**pod, "podType": "x"}, "GET /v2/pods/{id}: 200: podType: new, text"),
        (
            lambda pod: {key: value for key, value in pod.items() if key != "gpu"},
            "GET /v2/pods/{id}: 200: gpu: not there, object expected",
        ),
        (lambda pod: {**pod, "cost": str(pod["cost"])}, "GET /v2/pods/{id}: 200: cost: text, not number"),
        (
            lambda pod: {**pod, "status": pod["status"].replace("PROVISIONING", "QUEUED")},
            "GET /v2/pods/{id}: 200: status: value never seen",
        ),
    ],
)
def test_what_differs_is_named_by_call_and_field(
    change: Callable[[dict[str, Any]], dict[str, Any]],
    difference: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([written(tmp_path, lambda fake: otherwise(fake, change))]) == 1
    assert difference in capsys.readouterr().out


def test_a_status_that_the_fake_never_sends_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "drill.json"
    row: dict[str, object] = {
        "method": "DELETE",
        "path": "/v2/pods/{id}",
        "request": None,
        "status": 418,
        "body": {},
    }
    path.write_text(json.dumps({"provider": "runpod", "answers": [row]}))
    assert main([str(path)]) == 1
    assert "DELETE /v2/pods/{id}: 418: a status that the fake never sends" in capsys.readouterr().out
