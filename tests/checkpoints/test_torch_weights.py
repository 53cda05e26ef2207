"""Reading the model's tensors from files of `torch.save` without torch: what is found, what is refused, and
that nothing is ever called.
"""

import io
import os
import pickle
import tracemalloc
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from prime_train.checkpoints import torch_weights
from prime_train.checkpoints.torch_weights import NotConvertible, TorchWeights
from tests.checkpoints.torch_files import Kept, safetensors_in, torch_file

ONE = Kept("FloatStorage", (2, 2), os.urandom(16))


def converted(data: bytes) -> tuple[dict[str, Any], bytes]:
    weights = TorchWeights(io.BytesIO(data))
    made = b"".join(weights.content())
    assert len(made) == weights.size
    return safetensors_in(made)


@pytest.mark.parametrize(
    "state",
    [
        {"a": ONE},
        OrderedDict(a=ONE),
        {"state_dict": {"a": ONE}, "optimizer": {"a": ONE, "lr": 1}},
        {"epoch": 3, "model": OrderedDict(a=ONE), "rng": Path("some/object")},
        {"module": {"model": {"a": ONE}}, "step": 7},
    ],
)
def test_the_model_is_found_among_other_states(state: object) -> None:
    header, numbers = converted(torch_file(state))
    assert header == {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}
    assert numbers == ONE.data


def test_a_tensor_that_is_a_part_of_its_storage_has_that_part_alone() -> None:
    data = os.urandom(40)
    _, numbers = converted(torch_file({"a": Kept("FloatStorage", (3,), data, offset=4)}))
    assert numbers == data[16:28]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is not a file of torch.save"),
        (torch_file({"a": ONE})[:-30], "is not a file of torch.save"),
        (torch_file({"step": 3}), "has no model"),
        (torch_file({"a": ONE, "step": 3}), "has no model"),
        (torch_file({"module": {"a": Kept("FloatStorage", (0,), b"")}}), "has no model"),
        (
            torch_file({"a": Kept("FloatStorage", (2, 3), bytes(24), stride=(1, 2))}),
            "has a tensor that is not contiguous: 'a'",
        ),
        (
            torch_file({"a": Kept("FloatStorage", (5,), bytes(16))}),
            "has a tensor that is larger than its storage: 'a'",
        ),
        (
            torch_file({"a": Kept("FloatStorage", (2**62, 4), bytes(16))}),
            "has a tensor that is larger than its storage: 'a'",
        ),
        (torch_file({"a": Kept("FloatStorage", (-2,), bytes(16))}), "has no model"),
        (torch_file({"a": Kept("ComplexFloatStorage", (2,), bytes(16))}), "has a storage of an unknown type"),
        (torch_file({"a": ONE}, compression=zipfile.ZIP_DEFLATED), "has a structure that is too large"),
        (torch_file({"a": ONE}, byteorder=b"big"), "was written on a big-endian machine"),
        (torch_file({"a": ONE}, folder="some/where"), "is an archive, but not one of torch.save"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(NotConvertible) as caught:
        TorchWeights(io.BytesIO(data))
    assert str(caught.value).startswith(why)


class Calls:
    def __init__(self, function: Any, *args: object) -> None:
        self._made = function, args

    def __reduce__(self) -> Any:
        return self._made


def test_nothing_that_the_file_names_is_called(tmp_path: Path) -> None:
    there = tmp_path / "called"
    state = {
        "model": {"a": ONE},
        "x": Calls(os.mkdir, str(there)),
        "y": Calls(eval, f"__import__('os').mkdir({str(there)!r})"),
    }
    header, _ = converted(torch_file(state))
    assert list(header) == ["a"]
    assert not there.exists()


def test_a_structure_that_is_no_pickle_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": 1})[:-3])
    with pytest.raises(NotConvertible, match="has a structure that cannot be read"):
        TorchWeights(io.BytesIO(out.getvalue()))


def archive_of(structure: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", structure)
    return out.getvalue()


def twice_in_each_other(depth: int) -> bytes:
    """Return instructions that leave a tuple of two references to a tuple, and so on: few objects, whose hash
    takes 2**depth steps.
    """
    pairs = (
        b"h" + bytes([level]) + b"h" + bytes([level]) + b"\x86q" + bytes([level + 1])
        for level in range(depth)
    )
    return b"\x80\x02K\x01q\x00" + b"0".join(pairs)


@pytest.mark.parametrize(
    ("structure", "why"),
    [
        (twice_in_each_other(60) + b"}h\x3cK\x01s.", "with keys of an unknown kind"),
        (twice_in_each_other(60) + b"}(h\x3cK\x01u.", "with keys of an unknown kind"),
        (twice_in_each_other(60) + b"(h\x3cK\x01d.", "with keys of an unknown kind"),
        (twice_in_each_other(60) + b"\x8f(h\x3c\x90.", "with keys of an unknown kind"),
        (twice_in_each_other(60) + b"(h\x3c\x91.", "with keys of an unknown kind"),
        (
            twice_in_each_other(60) + b"ccollections\nOrderedDict\n]h\x3cK\x01\x86a\x85R.",
            "with keys of an unknown kind",
        ),
        (b"\x80\x02" + b"]" * 200_000 + b".", "that is too large"),
        (b"\x80\x02" + b"ca\nb\n" * 20_000 + b".", "that is too large"),
        (b"\x80\x02\x8b\x00\x10\x00\x00" + b"\x7f" * 4096 + b".", "that is too large"),
    ],
)
def test_a_small_structure_that_would_take_all_memory_or_time_is_refused(
    structure: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_weights, "OPCODES_MAX", 100_000)
    with pytest.raises(NotConvertible, match=f"has a structure {why}"):
        TorchWeights(io.BytesIO(archive_of(structure)))


def test_a_number_in_the_structure_cannot_reserve_memory() -> None:
    tracemalloc.start()
    with pytest.raises(NotConvertible, match="has no model"):
        TorchWeights(io.BytesIO(archive_of(b"\x80\x02Nr\xff\xff\xff\x0f.")))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_a_directory_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_weights, "PICKLE_BYTES_MAX", 1000)
    with pytest.raises(NotConvertible, match=r"is not a file of torch\.save"):
        TorchWeights(
            io.BytesIO(
                torch_file({str(number): Kept("FloatStorage", (1,), bytes(4)) for number in range(50)})
            )
        )


def test_numbers_that_are_damaged_end_the_conversion() -> None:
    data = bytearray(torch_file({"a": ONE}))
    at = data.index(ONE.data)
    data[at] ^= 1
    with pytest.raises(NotConvertible, match="is damaged: Bad CRC"):
        b"".join(TorchWeights(io.BytesIO(bytes(data))).content())
