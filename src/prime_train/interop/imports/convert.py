"""Reads the file, recognises whose it is, and makes the config of it."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.checks.validate import check_run_config
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.interop.export.machine_files import HEADER
from prime_train.interop.imports.draft import Draft, LeftOut, name_of, tree_of
from prime_train.interop.imports.dstack import read_dstack
from prime_train.interop.imports.files import list_absent, list_server
from prime_train.interop.imports.hosted import is_hosted, read_hosted
from prime_train.interop.imports.kubernetes import READERS, read_kubernetes
from prime_train.interop.imports.skypilot import read_skypilot
from prime_train.interop.imports.slurm import read_slurm
from prime_train.spec.finding import Finding
from prime_train.spec.finding_drafts import FindingDraft, ParseAborted
from prime_train.spec.overrides import config_text
from prime_train.spec.reader import read_text
from prime_train.spec.source_file import read_source
from prime_train.spec.toml_tree import read_code as read_toml
from prime_train.spec.tree import Mapping, Scalar
from prime_train.spec.yaml_tree import read_code

DOCUMENTS_MAX = 100
CHARS_MAX = 128 * 1024
"""A launch refuses larger configs, because they could not be stored."""
_GIVE = "give a file of one of these tools: SkyPilot, Kubernetes, dstack, Slurm, Prime's hosted training"
SLURM = "Slurm"
_SLURM = re.compile(r"^#SBATCH\b", re.MULTILINE)
_BESIDE = (
    *(
        "ConfigMap",
        "Secret",
        "Service",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ServiceAccount",
    ),
    *(
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "PriorityClass",
        "StorageClass",
        "ExternalSecret",
    ),
    *(
        "LocalQueue",
        "ClusterQueue",
        "ResourceFlavor",
        "WorkloadPriorityClass",
        "ResourceQuota",
        "NetworkPolicy",
    ),
    *("PodGroup", "ResourceClaimTemplate", "Workload"),
)
"""Kinds of objects of Kubernetes that run nothing: what a pod takes of them is listed with the pod."""
_NO_SCRIPTS = (".py", ".ipynb", ".md", ".rst", ".j2", ".tmpl", ".template")
_SEPARATOR = re.compile(r"---(?=\s|$)|\.\.\.\s*$")


@dataclass(frozen=True)
class Imported:
    """The config that was made. `tool`: whose file it was. `left`: what could not be carried over, in the
    order of lines. `missing`: what the config needs before it can be launched. `impossible`: what of `left`
    the command cannot run without. `findings`: those of `text`, as of the file `path`, with the text of each
    file in `sources`.
    """

    tool: str
    path: Path
    text: str
    left: tuple[LeftOut, ...]
    missing: tuple[Advice, ...]
    impossible: tuple[LeftOut, ...]
    findings: tuple[Finding, ...]
    sources: dict[str, str]
    files: dict[Path, str] = field(default_factory=dict)
    """Texts of the files that the config names, by their paths."""


@dataclass(frozen=True)
class _Tool:
    title: str
    is_its: Callable[[Mapping], bool]
    read: Callable[[Draft, Mapping], None]


_TOOLS = (
    _Tool("Kubernetes", lambda root: _has(root, "kind") and _has(root, "apiVersion"), read_kubernetes),
    _Tool("dstack", lambda root: _has(root, "type") and not _has(root, "run"), read_dstack),
    _Tool(
        "SkyPilot",
        lambda root: any(_has(root, key) for key in ("run", "resources", "num_nodes", "file_mounts")),
        read_skypilot,
    ),
)
_TRAINING = _Tool("hosted training", is_hosted, read_hosted)
"""Prime Intellect's: its configs are TOML, and of nothing else's form in YAML."""


def imported(file: Path, output: Path | None, *, name: str, usd: float | None) -> Imported:
    """Return the config that says what the file says. Nothing is written.

    `output`: where it would be written; None: configs/NAME.yaml. `name` overrides the file's own name; `usd`
    is the budget, which such files do not have. Raises UsageError if the file cannot be read, or is of no
    tool that is known.
    """
    tool, draft = _read(file)
    list_absent(draft)
    list_server(draft)
    draft.name = (
        name
        or draft.name
        or name_of(output.stem if output is not None else file.name.partition(".")[0] or tool)
    )
    path = output if output is not None else Path("configs") / f"{draft.name or 'imported'}.yaml"
    folder = path.parent / (draft.name or "imported")
    if draft.files:
        draft.code = {"folder": _from_here(folder)}
    text = config_text(tree_of(draft, usd))
    findings, sources = check_run_config(read_text(text, str(path)))
    left = tuple(sorted(dict.fromkeys(draft.left), key=lambda one: one.line))
    return Imported(
        tool,
        path,
        text,
        left,
        tuple(_missing(draft, usd)),
        tuple(dict.fromkeys(draft.impossible)),
        findings,
        sources,
        {folder / name: text for name, text in draft.files.items()},
    )


def _from_here(folder: Path) -> str:
    """Return the folder relative to the current one, if it is in there."""
    inside = os.path.relpath(folder)
    return folder.as_posix() if inside.startswith("..") else Path(inside).as_posix()


def checked(made: Imported) -> Imported:
    """Return the same with the findings as of now, when the files that the config names may have been written."""
    findings, sources = check_run_config(read_text(made.text, str(made.path)))
    return replace(made, findings=findings, sources=sources)


def _missing(draft: Draft, usd: float | None) -> list[Advice]:
    """Return what no file of another tool says, and what this one lacks."""
    found = []
    if usd is None:
        found.append(
            Advice(
                "budget.usd: how much all attempts together may cost; ",
                Option(SettingAdvice.USD, "20"),
                " sets it",
            )
        )
    if draft.trainer:
        return found + [Advice(text) for text in draft.chosen] + _missing_secrets(draft)
    if not draft.command:
        found.append(Advice("trainer.command: the file names no command"))
    if draft.count is not None and not draft.gpus and not draft.gpu_gb_min:
        found.append(
            Advice("hardware.gpus: the file names no kind of GPU, so the cheapest of any kind is rented")
        )
    found.append(
        Advice(
            "trainer.resume: what the command gets when a checkpoint was restored; without it, a lost run "
            "starts over"
        )
    )
    mounted = ""
    if draft.mounted:
        # A folder of checkpoints lies in the working tree.
        inside = re.sub(r"[^\w./-]|\.\.", "", draft.mounted[0]).strip("/.") or "checkpoints"
        mounted = (
            f"checkpoints: {{folder: {inside}}}, and let the command save there instead of to {draft.mounted[0]}, "
            "which is a bucket in the file, if it saves there; "
        )
    where = mounted or "checkpoints: where the command saves, "
    found.append(Advice(f"{where}so that a lost machine costs no more than the time since the last one"))
    if draft.spot == "never":
        found.append(
            Advice("hardware.spot is never, as in the file; prefer is cheaper once the run can resume")
        )
    return found + _missing_secrets(draft)


def _missing_secrets(draft: Draft) -> list[Advice]:
    names = ", ".join(draft.secrets)
    return [Advice(f"secrets: set {names} where the control plane runs")] if names else []


def _read(file: Path) -> tuple[str, Draft]:
    """Return the tool whose file it is, and the draft that was made of the file, which also lists what is not
    of this tool.
    """
    draft = Draft()
    try:
        source = read_source(file)
    except ParseAborted as halt:
        raise _unreadable(file, halt.draft) from None
    if len(source) > CHARS_MAX:
        raise UsageError(
            f"{file} has {len(source)} characters, and the commands of a run at most {CHARS_MAX}",
            fix="give what describes the run in a file of its own",
            code=Exit.FINDINGS,
        )
    if source.startswith(HEADER):
        draft.left.append(
            LeftOut(
                1,
                "",
                "prime-train has exported this file: launch the config that it was made of, which says all "
                "of it",
            )
        )
    if _SLURM.search(source):
        if file.suffix in _NO_SCRIPTS:
            why = "the file only contains a script of Slurm: give the script that it writes"
            draft.refuse_line(1, "", why)
        read_slurm(draft, source)
        return SLURM, draft
    if file.suffix == ".toml":
        _read_toml(draft, file, source)
        return _TRAINING.title, draft
    candidates: list[tuple[_Tool, Mapping]] = []
    for text in _documents(source):
        try:
            root, drafts = read_code(text)
        except ParseAborted as halt:
            raise _unreadable(file, halt.draft) from None
        for one in drafts:
            draft.refuse_line(one.place.line, "", f"{one.message}; {one.fix}" if one.fix else one.message)
        its = next((tool for tool in (*_TOOLS, _TRAINING) if tool.is_its(root)), None)
        if its is not None:
            candidates.append((its, root))
        else:
            name_only = [entry.key for entry in root.entries] in (["name"], ["name", "execution"])
            leave = draft.leave if name_only else draft.refuse
            leave(
                root,
                "",
                "this part of the file belongs to no tool that is known: delete it if nothing needs it",
            )
    chosen = next(
        (one for one in candidates if _kind(one[1]) in ("", *READERS)), candidates[0] if candidates else None
    )
    if chosen is None:
        message = (
            f"{file} is no SkyPilot task (run, resources), Kubernetes Job (kind: {', '.join(READERS)}), dstack "
            "task (type: task), Slurm script or config of hosted training (model, max_steps, env)"
        )
        raise UsageError(message, fix=_GIVE, code=Exit.FINDINGS)
    for tool, root in candidates:
        if root is not chosen[1]:
            why = f"another object of {tool.title} in the same file: a config describes one run"
            if _kind(root) in _BESIDE:
                draft.leave(root, _kind(root), why)
            else:
                draft.refuse(root, _kind(root), f"{why}; give it in a file of its own, and delete it here")
    tool, root = chosen
    tool.read(draft, root)
    return tool.title, draft


def _read_toml(draft: Draft, file: Path, source: str) -> None:
    try:
        root = read_toml(source)
    except ParseAborted as halt:
        raise _unreadable(file, halt.draft) from None
    if not is_hosted(root):
        raise UsageError(
            f"{file} is no config of Prime Intellect's hosted training (model, max_steps, [[env]])",
            fix=_GIVE,
            code=Exit.FINDINGS,
        )
    read_hosted(draft, root)


def _documents(source: str) -> list[str]:
    """Return the YAML documents of the text that are not empty, each on its own lines of the file. Raises
    UsageError if there are too many.
    """
    lines = source.splitlines(keepends=True)
    starts = [0, *(number for number, line in enumerate(lines) if _SEPARATOR.match(line)), len(lines)]
    if len(starts) > DOCUMENTS_MAX:
        raise UsageError(
            f"the file has more than {DOCUMENTS_MAX} documents",
            fix="give a file with one run",
            code=Exit.FINDINGS,
        )
    found = []
    for start, end in pairwise(starts):
        part = lines[start:end]
        if part and _SEPARATOR.match(part[0]):
            part = [_SEPARATOR.sub("", part[0], count=1), *part[1:]]
        if any(line.strip() and not line.lstrip().startswith("#") for line in part):
            found.append("\n" * start + "".join(part))
    return found or [source]


def _unreadable(file: Path, draft: FindingDraft) -> UsageError:
    message = f"{file}:{draft.place.line}:{draft.place.column}: {draft.message}"
    return UsageError(message, fix=draft.fix, code=Exit.FINDINGS)


def _has(root: Mapping, key: str) -> bool:
    return root.entry(key) is not None


def _kind(root: Mapping) -> str:
    """Return the kind of a Kubernetes object; empty for files of other tools."""
    entry = root.entry("kind")
    return entry.value.text if entry is not None and isinstance(entry.value, Scalar) else ""
