"""Lines of the script that say why it cannot resume, or what would make its saves safer."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

_SAVES = re.compile(
    r"\b(?:torch\.save|pickle\.dump|joblib\.dump|np\.savez?\w*|numpy\.savez?\w*|save_pretrained|save_model|save_weights|"
    r"save_checkpoint|save_state|save_file|dcp\.save|\w+\.save)\s*\("
)
_LOADS = re.compile(
    r"\b(?:torch\.load|pickle\.load|joblib\.load|np\.load|numpy\.load|load_state_dict|load_state|load_checkpoint|"
    r"load_weights|load_model|load_file|restore\w*|dcp\.load)\s*\("
)
_LOOP = re.compile(
    r"^\s*(?:for\s+(?P<name>\w+)\s+in\s+(?:\w+\()?\s*(?:range|count|trange)\s*\(|while\s+(?:True|\w*(?:step|iter|epoch)\w*\s*<))"
)
_STEP_NAME = re.compile(
    r"^(?!micro|accum|inner|eval|val)\w*(?:step|epoch|iter|update)\w*$|^(?:it|i|t|e)$", re.IGNORECASE
)
_OF_CHECKPOINT = re.compile(
    r"ckpt|checkpoint|resum|latest|state|model|snapshot|weights|restore", re.IGNORECASE
)
_ONE_LINE_SAVE = re.compile(
    r"^(?P<indent>\s*)torch\.save\((?P<what>.+),\s*(?P<path>[\w.\[\]\"'/]+|f\"[^\"]*\"|f'[^']*'|os\.path\.join\([^()]*\))\)\s*$"
)
LINE_CHARS_MAX = 120


@dataclass(frozen=True)
class ScriptLine:
    """A line of a script. `number`: from 1."""

    script: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.script}:{self.number}: {self.text.strip()[:LINE_CHARS_MAX]}"


def why_not_resumed(scripts: Iterable[tuple[str, str]]) -> list[str]:
    """Return what in the scripts, as pairs of path and text, explains that the training starts over: a
    sentence with its line each.
    """
    lines = _code_lines(scripts)
    saves = [here for here in lines if _SAVES.search(here.text)]
    loads = [here for here in lines if _is_load(here)]
    loops = [here for here in lines if _begins_training(here)]
    said = []
    if saves and not loads:
        said.append(f"it saves in {saves[0]}, and no line of it loads a checkpoint")
    elif loads:
        said.append(f"it loads in {loads[0]}, but did not go on from what was restored")
    if loops:
        # Other loops, such as that over the data, are seldom where checkpoints are.
        near = {line.script for line in (*saves, *loads)}
        loop_line = next((line for line in loops if line.script in near), loops[0])
        said.append(
            f"its training begins in {loop_line}, which is where to begin with the step of the checkpoint"
        )
    return said


def where_it_loads(scripts: Iterable[tuple[str, str]]) -> list[str]:
    """Return where the scripts, as pairs of path and text, load a checkpoint, for a script whose starts with
    one all failed: a sentence; empty if no line does.
    """
    loads = [here for here in _code_lines(scripts) if _is_load(here)]
    return [f"it loads in {loads[0]}"] if loads else []


def _code_lines(scripts: Iterable[tuple[str, str]]) -> list[ScriptLine]:
    return [
        ScriptLine(path, number, line)
        for path, text in scripts
        for number, line in enumerate(text.splitlines(), 1)
        if not line.lstrip().startswith("#")
    ]


def _is_load(here: ScriptLine) -> bool:
    return _LOADS.search(here.text) is not None and _OF_CHECKPOINT.search(here.text) is not None


def _begins_training(here: ScriptLine) -> bool:
    loop = _LOOP.match(here.text)
    return loop is not None and (loop["name"] is None or _STEP_NAME.match(loop["name"]) is not None)


def atomic_patch(path: str, text: str) -> str:
    """Return a patch with which each plain `torch.save(..., PATH)` of the script writes to another name and
    renames it; empty if there is none, or the script does so already.
    """
    lines = text.splitlines(keepends=True)
    if "os.replace(" in text or ".rename(" in text:
        return ""
    changed, count = [], 0
    for line in lines:
        found = _ONE_LINE_SAVE.match(line)
        if found is None:
            changed.append(line)
            continue
        count += 1
        indent, what, place = found["indent"], found["what"], found["path"]
        changed += [
            f'{indent}torch.save({what}, str({place}) + ".tmp")\n',
            f'{indent}os.replace(str({place}) + ".tmp", {place})\n',
        ]
    if not count:
        return ""
    if not re.search(r"^import os\b|^import .*\bos\b", text, re.MULTILINE):
        at = next(
            (
                n
                for n, line in enumerate(changed)
                if line.startswith(("import ", "from ")) and "__future__" not in line
            ),
            0,
        )
        changed.insert(at, "import os\n")
    return "".join(difflib.unified_diff(lines, changed, f"a/{path}", f"b/{path}"))
