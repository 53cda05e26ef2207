"""The lines of a script that keep it from resuming, and the patch that makes its saves safer."""

import subprocess
import sys
from pathlib import Path

from prime_train.rehearsal.script_lines import atomic_patch, why_not_resumed

NEVER_LOADS = """\
import torch
for step in range(1, 1000):
    loss = train(step)
    if step % 100 == 0:
        torch.save(model.state_dict(), f"out/model_{step}.pt")
"""


def test_a_script_that_never_loads_is_told_where_it_saves_and_begins() -> None:
    said = why_not_resumed([("train.py", NEVER_LOADS)])
    assert said == [
        'it saves in train.py:5: torch.save(model.state_dict(), f"out/model_{step}.pt"), and no line of it loads '
        "a checkpoint",
        "its training begins in train.py:2: for step in range(1, 1000):, which is where to begin with the step of "
        "the checkpoint",
    ]


def test_the_loop_is_looked_for_where_checkpoints_are_saved_and_loaded() -> None:
    loader = "def batches():\n    while True:\n        yield from data\n"
    said = why_not_resumed([("data.py", loader), ("train.py", NEVER_LOADS)])
    assert said[-1].startswith("its training begins in train.py:2: ")


def test_loops_within_a_step_and_loads_of_data_are_not_meant() -> None:
    text = "meta = pickle.load(f)\nwhile True:\n    for micro_step in range(4):\n        pass\n"
    said = why_not_resumed([("train.py", text)])
    assert [line.split(":")[1] for line in said] == ["2"]


def test_the_patch_applies_and_the_script_saves_by_a_rename(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n\npath = 'model.pt'\ntorch.save({'step': 3}, path)\n")
    patch = atomic_patch("train.py", script.read_text())
    subprocess.run(["patch", "-p1", "-s"], cwd=tmp_path, input=patch, text=True, check=True)
    (tmp_path / "torch.py").write_text(
        "def save(what, path):\n    assert str(path).endswith('.tmp'), path\n    open(path, 'w').write(str(what))\n"
    )
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True)
    assert (tmp_path / "model.pt").read_text() == "{'step': 3}"


def test_a_script_that_renames_already_or_saves_otherwise_gets_no_patch() -> None:
    assert atomic_patch("a.py", "torch.save(x, p + '.tmp')\nos.replace(p + '.tmp', p)\n") == ""
    assert atomic_patch("a.py", "torch.save(\n    x,\n    p,\n)\n") == ""
