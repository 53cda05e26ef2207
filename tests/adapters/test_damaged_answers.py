"""The damages themselves."""

import json
import random

from tests.adapters.damaged_answers import HOSTILE, mutated


def test_the_damages_bite() -> None:
    body = json.dumps(
        {"pods": [{"id": "a", "status": "RUNNING", "cost": 0.5, "ssh": {"direct": None}}]}
    ).encode()
    found = {mutated(body, random.Random(seed)) for seed in range(200)}
    assert len(found) > 100
    assert any(b'"id": "a"' not in each for each in found)


def test_no_damage_changes_the_next_ones() -> None:
    before = json.dumps(HOSTILE)
    body = json.dumps({"pods": [{"id": "a"}, {"id": "b"}], "more": {"x": {}}}).encode()
    found = [mutated(body, random.Random(seed)) for seed in range(3000)]
    assert json.dumps(HOSTILE) == before
    assert found == [mutated(body, random.Random(seed)) for seed in range(3000)]
