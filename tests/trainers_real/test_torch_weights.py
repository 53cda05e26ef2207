"""Files of the real `torch.save`, converted without torch, are read by the real safetensors with the same
numbers.
"""

import subprocess
from pathlib import Path

import pytest

from prime_train.checkpoints.torch_weights import NotConvertible, TorchWeights
from tests.trainers_real.machine_taken_away import TRAINERS
from tests.waiting import HANG_S

SAVE = """
import torch
from pathlib import Path
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Embedding(50, 8), torch.nn.Linear(8, 50), torch.nn.BatchNorm1d(50))
model[1].weight = torch.nn.Parameter(torch.randn(60, 8)[5:55])  # a part of its storage
tied = {**model.state_dict(), "head": model[0].weight, "half": torch.randn(3, 5).to(torch.bfloat16), "flags": torch.tensor([True, False])}
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randint(0, 50, (4,))).sum().backward()
optimizer.step()
torch.save(tied, "plain.pt")
torch.save({"state_dict": tied, "optimizer_states": [optimizer.state_dict()], "when": Path("a")}, "lightning.ckpt")
torch.save({"weight": torch.randn(4, 6).t()}, "transposed.pt")
"""
COMPARE = """
import torch
from safetensors.torch import load_file
for name in ("plain.pt", "lightning.ckpt"):
    saved, made = torch.load(name, weights_only=False), load_file(name + ".safetensors")
    saved = saved.get("state_dict", saved)
    assert saved.keys() == made.keys(), made.keys()
    for key, tensor in saved.items():
        assert tensor.dtype == made[key].dtype and torch.equal(tensor, made[key]), key
print("same")
"""


def python(folder: Path, code: str) -> str:
    done = subprocess.run(
        [TRAINERS / "python", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_converted_weights_are_those_that_were_saved(tmp_path: Path) -> None:
    python(tmp_path, SAVE)
    for name in ("plain.pt", "lightning.ckpt"):
        with (tmp_path / name).open("rb") as file:
            (tmp_path / f"{name}.safetensors").write_bytes(b"".join(TorchWeights(file).content()))
    assert python(tmp_path, COMPARE) == "same\n"
    with (
        (tmp_path / "transposed.pt").open("rb") as file,
        pytest.raises(NotConvertible, match="not contiguous"),
    ):
        TorchWeights(file)
