"""What a trainer reports beside loss and reward, for the metrics of the run."""

import pytest

from prime_train.spec.spec import ProgressSpec
from prime_train.trainers.lightning.trainer import LightningReader
from prime_train.trainers.progress import OTHERS_MAX, LineReader, others_of, reader_for


@pytest.mark.parametrize(
    ("reader", "lines", "others"),
    [
        (
            reader_for(ProgressSpec()),
            ['{"step": 1, "loss": 2, "lr": 1e-3, "text": "x", "ok": true}'],
            {"lr": 0.001},
        ),
        (reader_for(ProgressSpec(kind="csv")), ["step,loss,lr", "1,2,0.5"], {"lr": 0.5}),
        (LightningReader(""), ["epoch,step,train_loss,lr", "0,0,0.5,0.25"], {"lr": 0.25}),
    ],
    ids=["jsonl", "csv", "lightning"],
)
def test_further_numbers_of_a_row_are_kept_by_name(
    reader: LineReader, lines: list[str], others: dict[str, float]
) -> None:
    read = [found for line in lines if (found := reader.read(line)) is not None]
    assert [others.items() <= found.others.items() for found in read] == [True]


def test_only_finite_numbers_with_names_that_can_be_shown_are_kept_and_not_too_many() -> None:
    assert others_of(
        {"a": float("nan"), "b": "text", "c": None, "d\x1b": 1.0, "": 1.0, "x" * 200: 1.0, "good": 1.0}
    ) == {"good": 1.0}
    assert len(others_of({f"figure {number}": number for number in range(1000)})) == OTHERS_MAX
