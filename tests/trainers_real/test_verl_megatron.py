"""The folders of Megatron's checkpoints in verl, taken from verl's own functions. Its engine needs a GPU and
Megatron; its paths need neither.
"""

import ast
import os
from pathlib import Path
from typing import Any

from prime_train.trainers.of_spec import FileInfo, trainer_for
from tests.builders import spec
from tests.trainers_real.machine_taken_away import TRAINERS_RL

MODULE = "verl/utils/megatron_utils.py"


def own_paths() -> dict[str, Any]:
    """Return verl's functions that name the parts of a checkpoint; the rest of their module imports
    Megatron.
    """
    (module,) = TRAINERS_RL.parent.glob(f"lib/python3*/site-packages/{MODULE}")
    parts: list[ast.stmt] = [
        node
        for node in ast.parse(module.read_text()).body
        if (isinstance(node, ast.FunctionDef) and node.name.startswith("get_") and "path" in node.name)
        or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    ]
    names: dict[str, Any] = {"os": os, "local_mkdir_safe": lambda path: path}
    exec(compile(ast.Module(parts, []), str(module), "exec"), names)
    return names


def test_the_parts_and_the_last_file_are_where_verl_puts_them(tmp_path: Path) -> None:
    names, actor = own_paths(), tmp_path / "actor"
    parts = [names[f"get_{part}_dist_checkpoint_path"](actor) for part in ("model", "optimizer", "extra")]
    files = [f"{part}/{name}" for part in parts for name in ("__0_0.distcp", ".metadata", "common.pt")]
    files += [
        f"{names['get_hf_model_checkpoint_path'](actor)}/config.json",
        names["get_transformer_config_checkpoint_path"](actor),
    ]
    files += [names["get_checkpoint_contents_manifest_path"](actor), str(tmp_path / "data.pt")]
    made = spec(trainer={"kind": "verl", "command": "true trainer.save_freq=1"}, checkpoints={})
    seen = [
        FileInfo(Path(file).relative_to(tmp_path).as_posix(), 10, 100.0 + at) for at, file in enumerate(files)
    ]
    assert trainer_for(made).is_complete(made, seen, 1_000)
    without_last = [file for file in seen if file.path != "actor/ckpt_contents.json"]
    assert not trainer_for(made).is_complete(made, without_last, 1_000)
