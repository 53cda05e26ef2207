"""Files that commands name, and that are not where they run."""

import re
from collections.abc import Iterator
from pathlib import Path

from prime_train.interop.imports.draft import Draft
from prime_train.spec.launchers import named_files

_ABSENT = (
    "there is no such file in the working tree, in which commands run: import where it is, or write what makes or "
    "fetches it under setup; if it is in the image, change to its folder before"
)
_MAKES = re.compile(
    r"(?<![\w./-])(cd|pushd|clone|wget|curl|unzip|tar|cp|mv|ln|rsync|gsutil|aws|hf|huggingface-cli|tee|unlzma|gunzip|"
    r"make|cmake|download|venv|virtualenv)(?![\w-])|>(?![&/])|>/(?!dev/null)"
)
"""What changes the folder, or may make files."""
_PIPED_TO_SHELL = re.compile(
    r"\b(curl|wget)\b[^|;&]{1,300}\|[ \t]{0,9}(sudo[ \t]{1,9})?(ba)?sh\b[^;&|>]{0,100}$"
)
"""A line that runs what it fetches, as programs are installed."""
_RUN = re.compile(r"(?:^|[;&|][ \t]{0,9})(?:bash|sh|source|\.)[ \t]{1,9}(?P<file>[\w./-]+)")
_PLAIN = re.compile(r"[\w.][\w./@+-]{0,200}")


_SERVES = re.compile(
    r"(jupyter(-lab)?|streamlit|uvicorn|gunicorn|tensorboard|gradio|python3? -m http\.server|vllm serve|ollama serve|"
    r"python3? -m (vllm\.entrypoints|sglang\.launch_server)|text-generation-launcher|trl vllm-serve)\b"
)


def list_server(draft: Draft) -> None:
    """Refuse a last command that serves and never ends."""
    for what, lines in draft.lines[-1:]:
        number, last = next(
            ((number, line.strip()) for number, line in reversed(lines.items()) if line.strip()), (1, "")
        )
        if _SERVES.match(last.removeprefix("exec ").removeprefix("uv run ")) and not last.endswith("&"):
            why = "it serves and does not train, and nobody reaches a port of the machine: give a file of what trains"
            draft.refuse_line(number, what, f"{last[:40]}: {why}")


def list_absent(draft: Draft) -> None:
    """Refuse files that commands name, or that the other tool copies, and that are not in the working tree."""
    if "repo" in draft.code:
        return
    folder = draft.code.get("folder")
    base = Path(folder) if isinstance(folder, str) else Path()
    for node, what, name in draft.copied:
        if not _PLAIN.fullmatch(name) or ".." in name.split("/") or not (base / name).exists():
            why = (
                f"{name[:80]!r} is not at this path in the working tree, and nothing else is copied: let the commands "
                "use the files where they are in there"
            )
            draft.refuse(node, what, why)
    seen = set[str]()
    for what, number, line in _until_made(draft):
        for name in _names(line):
            if _PLAIN.fullmatch(name) and name not in seen and not (base / name).exists():
                seen.add(name)
                draft.refuse_line(number, what, f"{name[:80]}: {_ABSENT}")


def _until_made(draft: Draft) -> Iterator[tuple[str, int, str]]:
    """Yield the lines of the commands, each with those that it goes on with, up to the first that may make files."""
    for what, lines in draft.lines:
        whole, first = "", 0
        for number, line in lines.items():
            first = first if whole else number
            whole += line.rstrip().removesuffix("\\") + " "
            if line.rstrip().endswith("\\"):
                continue
            if not line.lstrip().startswith("#"):
                if _MAKES.search(whole) and not _PIPED_TO_SHELL.fullmatch(whole.strip()):
                    return
                yield what, first, whole.strip()
            whole = ""
        if whole:
            yield what, first, whole.strip()


def _names(line: str) -> Iterator[str]:
    for _, name in (*named_files(line, ()), *named_files("", (line,))):
        yield name
    for found in _RUN.finditer(line):
        if (
            not found["file"].startswith(("/", "-"))
            and "." in found["file"]
            and "/bin/activate" not in found["file"]
        ):
            yield found["file"]
