"""A requirement is met only by two finite numbers that compare as it says; what cannot be compared never
counts as met.
"""

import pytest

from prime_train.spec.requirements import Met, judged_requirement, parse_requirement


@pytest.mark.parametrize(
    ("line", "this", "base", "outcome", "limit"),
    [
        ("reward >= 0.8", 0.8, None, Met.MET, 0.8),
        ("reward > 0.8", 0.8, None, Met.NOT_MET, 0.8),
        ("loss<=base*1.02", 2.03, 2.0, Met.MET, 2.04),
        ("loss <= base * 1.02", 2.05, 2.0, Met.NOT_MET, 2.04),
        ("eval/accuracy >= base - 0.01", 0.895, 0.9, Met.MET, 0.89),
        ("eval/accuracy >= base-1e-2", 0.885, 0.9, Met.NOT_MET, 0.89),
        ("mean time < base / 2", 0.9, 2.0, Met.MET, 1.0),
        ("loss < base", 2.0, 2.0, Met.NOT_MET, 2.0),
        ("loss < -.5", -0.6, None, Met.MET, -0.5),
    ],
)
def test_the_limit_is_a_value_or_that_of_the_base(
    line: str, this: float, base: float | None, outcome: Met, limit: float
) -> None:
    wanted = parse_requirement(line)
    found = judged_requirement(wanted, {wanted.name: this}, {wanted.name: base} if base is not None else None)
    assert (found.outcome, found.why) == (outcome, "")
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("this", "base", "outcome", "why"),
    [
        ({"loss": None}, {"loss": 1.0}, Met.NOT_MET, "the run's number is not finite"),
        ({}, {"loss": 1.0}, Met.NOT_MET, "the run has no result named loss"),
        ({"lost": 1.0}, {"loss": 1.0}, Met.NOT_MET, "the run has no result named loss; did you mean lost?"),
        ({"loss": 1.0}, None, Met.PENDING, "there is no base run to compare with"),
        ({"loss": 1.0}, {}, Met.PENDING, "the base run has no result named loss"),
        ({"loss": 1.0}, {"loss": None}, Met.PENDING, "the number of the base run is not finite"),
        ({"loss": 1.0}, {"loss": 1e308}, Met.PENDING, "the number of the base run leads to no finite limit"),
    ],
)
def test_what_cannot_be_compared_is_never_met(
    this: dict[str, float | None], base: dict[str, float | None] | None, outcome: Met, why: str
) -> None:
    found = judged_requirement(parse_requirement("loss <= base * 10"), this, base)
    assert (found.outcome, found.why) == (outcome, why)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("loss", "compares nothing"),
        ("", "compares nothing"),
        ("loss: 3", "compares nothing"),
        ("<= 3", "names no number"),
        ("loss => 3", "use >="),
        ("loss == 3", "== is not a comparison that can be required"),
        ("loss != 3", "!= is not a comparison that can be required"),
        ("loss <=", "nothing is not a value"),
        ("loss <= bsae * 2", "did you mean base?"),
        ("loss <= reward", "reward is not a value to compare with; write"),
        ("loss <= base * nan", "is not a value"),
        ("loss <= nan", "nan is not a value"),
        ("loss <= 1e999", "too large"),
        ("loss <= base / 0", "divides by 0"),
        ("loss <= base * 2 + 1", "is not a value"),
        ("0 <= loss <= 1", "is not a value"),
        ("loss\x1b <= 1", "no control characters"),
        (f"{'x' * 300} < 1", "at most 200"),
    ],
)
def test_a_line_of_another_form_is_refused_with_what_to_write(line: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        parse_requirement(line)
