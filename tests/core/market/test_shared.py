"""What the account has seen travels whole, without names of configs and images, and between versions."""

import contextlib
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.market.observations import NOTHING_SEEN, Losses, Observations, Times
from prime_train.market.reputation import Axis, Exclusion, FailureDomain, Reputation
from prime_train.market.run_lengths import Lengths
from prime_train.market.shared import BYTES_MAX, PAIRS_MAX, packed, unpacked
from prime_train.market.step_times import Measurement
from prime_train.spec.causes import Cause

T0_S = 1_800_000_000
CONFIG, IMAGE = "secret-plan", "registry.example/acme/secret:1"


def excluded(axis: Axis, name: str) -> Exclusion:
    causes = ((Cause.PREFLIGHT_FAILED, 2), (Cause.SILENT, 1))
    return Exclusion(
        FailureDomain(axis, "vast", name), causes, last_s=T0_S - 60, until_s=T0_S + 3600, as_of_s=T0_S
    )


SEEN = Observations(
    losses={("prime", True): Losses(10.5, 2.25), ("vast", False): Losses(0.1, 0.0)},
    boot={"prime": Times(1.5, 300.25)},
    setup={CONFIG: Times(1.0, 400.0), "other": Times(2.0, 500.0)},
    resume={CONFIG: Times(1.0, 90.0)},
    detection=Times(3.0, 450.0),
    steps={
        "a" * 64: {
            ("H100_80GB", 8): Measurement(1.25, 99, "", 1.5, 62_000.0, 81_559.0, spread_s=0.25),
            ("L40S_48GB", 1): Measurement(9.0, 8),
        }
    },
    similar={"b" * 64: {("H100_80GB", 8): Measurement(1.25, 99, is_probe=True)}},
    machines=7,
    lengths={"c" * 64: Lengths((800.0, 1200.0))},
    reputation=Reputation(
        {
            one.place: one
            for one in (
                excluded(Axis.MACHINE, "18412"),
                excluded(Axis.IMAGE, IMAGE),
                excluded(Axis.IMAGE, "other"),
            )
        }
    ),
)


def test_everything_arrives_with_the_names_that_are_known_there() -> None:
    assert all(getattr(SEEN, field.name) != getattr(NOTHING_SEEN, field.name) for field in fields(SEEN)), (
        "each field has something"
    )
    everything = unpacked(packed(SEEN), [CONFIG, "other"], [IMAGE, "other"])
    assert everything == SEEN
    ours = unpacked(packed(SEEN), [CONFIG, "new"], [])
    assert (ours.setup, ours.resume) == ({CONFIG: Times(1.0, 400.0)}, SEEN.resume)
    assert [place.name for place in ours.reputation.exclusions] == ["18412"]
    assert (ours.losses, ours.steps, ours.machines) == (SEEN.losses, SEEN.steps, SEEN.machines)


def test_no_run_is_named_because_ids_begin_with_the_names_of_configs() -> None:
    named = replace(SEEN, steps={"a" * 64: {("H100_80GB", 8): Measurement(1.25, 99, "secret-plan-x7k2m")}})
    assert "secret-plan" not in packed(named).decode()


def test_no_config_and_no_image_is_named() -> None:
    text = packed(SEEN).decode()
    assert "18412" in text
    for name in (CONFIG, IMAGE, "acme", "other"):
        assert name not in text


def test_what_a_newer_version_adds_is_ignored_and_what_an_older_one_lacks_has_its_default() -> None:
    content = json.loads(packed(SEEN))
    del content["detection"], content["losses"][0][1]["count"]
    content |= {"mood": "good"}
    content["boot"][0][1]["mood"] = [1]
    found = unpacked(json.dumps(content).encode(), [], [])
    assert (found.detection, found.losses["prime", True], found.boot) == (Times(), Losses(10.5), SEEN.boot)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"market"',
        b"<html>",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"machines": "many"}',
        b'{"machines": -1}',
        b'{"machines": 1e300}',
        b'{"machines": 1' + b"0" * 5000 + b"}",
        b'{"boot": {"prime": 1}}',
        b'{"boot": [["prime"]]}',
        b'{"boot": [["prime", {"weight": NaN}]]}',
        b'{"boot": [["prime", {"weight": 1, "total_s": Infinity}]]}',
        b'{"losses": [["prime", {}]]}',
        b'{"losses": [[["prime", true, 1], {}]]}',
        b'{"losses": [[[{}, true], {"hours": 1}]]}',
        b'{"losses": [[["prime", true], {"hours": -720}]]}',
        b'{"reputation": {"exclusions": [[{"axis": "mood", "provider": "vast", "name": "1"}, {}]]}}',
        b'{"reputation": {"exclusions": [[{"axis": "host", "provider": "vast", "name": "1"}, {"last_s": '
        b"1}]]}}",
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_does_not_fit_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # whatever it says is not shown
        unpacked(body, [CONFIG], [IMAGE])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3),
)
NAMES = st.sampled_from([field.name for field in fields(Observations)])


@given(st.dictionaries(NAMES, JSON))
def test_garbage_is_read_or_a_value_error(content: dict[str, object]) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(unpacked(json.dumps(content).encode(), [CONFIG], [IMAGE]), Observations)


def test_an_answer_is_bounded_and_keeps_the_newest() -> None:
    many = replace(
        SEEN,
        steps={f"{number:064}": {("H100_80GB", 8): Measurement(1.0, 9)} for number in range(3 * PAIRS_MAX)},
    )
    assert len(packed(many)) <= BYTES_MAX
    assert list(unpacked(packed(many), [], []).steps) == list(many.steps)[:PAIRS_MAX]
    long = {
        f"{number:064}": {("x" * 5000, count): Measurement(1.0, 9) for count in range(9)}
        for number in range(PAIRS_MAX)
    }
    assert len(packed(replace(SEEN, steps=long))) <= BYTES_MAX
    kept = list(unpacked(packed(replace(SEEN, steps=long)), [], []).steps)
    assert 0 < len(kept) < PAIRS_MAX
    assert kept == list(long)[: len(kept)]
