"""The file of results that a step writes: an object of finite numbers, and nothing else."""

import pytest

from prime_train.outputs.results.after import FILE_BYTES_MAX, InvalidResults, parse_results


def test_an_object_of_numbers_is_read_by_name() -> None:
    assert parse_results(b'{"accuracy": 0.5, "eval/loss": 3, "tokens": -1e12}') == {
        "accuracy": 0.5,
        "eval/loss": 3.0,
        "tokens": -1e12,
    }
    assert parse_results(b"{}") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "it is not JSON"),
        (b"accuracy: 0.5", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "more than 65536 bytes"),
        (b"[" * 60_000, "it is not JSON"),
        (b"[0.5]", "it holds a list; write an object of numbers"),
        (b"0.5", "it holds a number; write an object of numbers"),
        (b'{"loss": NaN}', "it contains NaN, which is not a finite number"),
        (b'{"loss": -Infinity}', "it contains -Infinity"),
        (b'{"loss": 1e999}', "'loss' is not finite, or too large"),
        (b'{"loss": 1e301}', "'loss' is not finite, or too large"),
        (b'{"loss": 1' + b"0" * 400 + b"}", "'loss' is not finite, or too large"),
        (b'{"loss": 1' + b"0" * 5000 + b"}", "it is not JSON"),
        (b'{"loss": "0.5"}', "'loss' is text, not a number"),
        (b'{"passed": true}', "'passed' is true or false, not a number"),
        (b'{"task": {"loss": 1}}', "'task' is an object, not a number"),
        (b'{"loss": null}', "'loss' is null, not a number"),
        (b'{"": 1}', "'' cannot be the name of a result"),
        (b'{"a\\u001b[1m": 1}', "cannot be the name of a result"),
        (b'{"loss": 1, "loss": 2}', "'loss' is there twice"),
        (
            b"{" + b", ".join(b'"%d": 1' % place for place in range(201)) + b"}",
            "it has 201 results; at most 200 are allowed",
        ),
        (b" " * (FILE_BYTES_MAX + 1), "it has more than 65536 bytes"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: bytes, said: str) -> None:
    with pytest.raises(InvalidResults) as refused:
        parse_results(text)
    assert said in str(refused.value)
