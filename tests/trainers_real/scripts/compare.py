"""Compare two checkpoints tensor by tensor: `compare.py FOLDER FOLDER` prints the number of tensors and the
names of those that differ.
"""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.tensor import DTensor


def tensors(value, name=""):
    if isinstance(value, DTensor):
        yield name, value.to_local()
    elif isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, np.ndarray):
        yield name, torch.frombuffer(bytearray(value.tobytes() or b" "), dtype=torch.uint8)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors(inner, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            yield from tensors(inner, f"{name}.{at}")
    else:
        yield name, torch.frombuffer(bytearray(repr(value).encode() or b" "), dtype=torch.uint8)


def content(folder):
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".safetensors":
            yield from tensors(load_file(path), name)
        elif path.suffix == ".ckpt":
            # Lightning's callbacks save paths, and its loops count an epoch twice at whose beginning they
            # resume.
            saved = torch.load(path, weights_only=False)
            yield from tensors(
                {key: value for key, value in saved.items() if key not in ("callbacks", "loops")}, name
            )
        elif path.suffix in (".pt", ".pth"):
            yield from tensors(torch.load(path, weights_only=False), name)
        elif path.suffix == ".pkl":
            yield from tensors(pickle.loads(path.read_bytes()), name)
        elif path.name == ".metadata":
            whole = Path(sys.argv[3]) / f"{folder.parent.parent.name}.whole"
            dcp_to_torch_save(path.parent, whole)
            yield from tensors(torch.load(whole, weights_only=False), name)


def main():
    first, second = (dict(content(Path(folder))) for folder in sys.argv[1:3])
    different = [
        name
        for name in first.keys() | second.keys()
        if name not in first or name not in second or not same(first[name], second[name])
    ]
    print(json.dumps({"tensors": len(first), "different": sorted(different)}))


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)


main()
