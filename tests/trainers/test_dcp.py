"""The content of a real distributed checkpoint's metadata, read without PyTorch."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.trainers.dcp import shard_sizes

TRAINER = Path(__file__).parent.parent / "data" / "dcp" / "step_10" / "trainer"
METADATA = (TRAINER / ".metadata").read_bytes()


def test_it_names_every_shard_with_the_bytes_it_needs() -> None:
    assert shard_sizes(METADATA) == {path.name: path.stat().st_size for path in TRAINER.glob("*.distcp")}


@given(st.integers(0, len(METADATA) - 1))
def test_metadata_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="metadata"):
        shard_sizes(METADATA[:length])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    with pytest.raises(ValueError, match="metadata"):
        shard_sizes(data)


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def test_nothing_in_the_pickle_is_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="metadata"):
        shard_sizes(pickle.dumps(_Bomb(tmp_path / "ran")))
    assert not (tmp_path / "ran").exists()
