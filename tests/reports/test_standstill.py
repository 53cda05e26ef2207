"""A trainer whose agent sends heartbeats while it makes no step is not called healthy."""

from typing import Any

import pytest

from prime_train.runs.run import RunState
from prime_train.runs.verdict import Healthy
from prime_train.runs.wire import Gpus, Phase
from prime_train.status.diagnosis.diagnosis_model import DiagnosisKind, Facts
from prime_train.status.diagnosis.explanations import diagnosis_of
from tests import builders as b

NOW_S = b.T0_S + 2000
IDLE = Gpus(count=8, util_low_pct=0.0, util_high_pct=0.0)
BUSY = Gpus(count=8, util_low_pct=90.0, util_high_pct=99.0)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"step_age_s": 20, "gpus": IDLE}, DiagnosisKind.WELL),
        ({"step_age_s": 90, "gpus": BUSY}, DiagnosisKind.WELL),
        ({"step_age_s": 90, "gpus": IDLE}, DiagnosisKind.NO_PROGRESS),
        ({"step_age_s": 290, "gpus": BUSY}, DiagnosisKind.NO_PROGRESS),
        ({"step_age_s": 290}, DiagnosisKind.NO_PROGRESS),
        ({"step_age_s": 290, "saving": True}, DiagnosisKind.WELL),
    ],
)
def test_heartbeats_alone_are_not_health(message: dict[str, Any], kind: DiagnosisKind) -> None:
    beat = b.heartbeat(7, **({"step": 10, "step_slow_s": None} | message))
    record = b.record(b.run(RunState.TRAINING), heartbeat=beat, heartbeat_s=NOW_S - 20)
    assert diagnosis_of(Facts(record, NOW_S, Healthy(Phase.TRAIN, 10)))[0].kind is kind
