"""Checkpoints in which each process writes a file of its own: which of these files are missing, by their
names.

DeepSpeed, FSDP and many scripts number such files by the process. A gap in the numbers, or fewer files than
there are processes, shows that a process has not written yet, or has died. How many processes there are is
known from the names, from the number that DeepSpeed and Megatron put beside a rank, or from the config; a
missing last file is seen only if it is.
"""

import re
from collections.abc import Collection, Iterable, Iterator

RANKS_MAX = 100_000

_RANK = re.compile(
    r"(?<![A-Za-z0-9])(?:zero_pp_|bf16_zero_pp_)?(?:rank|mp_rank|dp_rank|tp_rank|worker|"
    r"process)[_-]?(\d{1,6})(?!\d)"
)
_OF = re.compile(r"(?:world_size|nproc)[_-]?(\d{1,6})(?!\d)|(\d{1,6})-of-(\d{1,6})")
_DEEPSPEED = re.compile(r"(.*/)?(?:bf16_|fp16_)?zero_pp_rank_(\d{1,6})_mp_rank_(\d{1,6})_optim_states\.pt")


def missing_state(paths: Collection[str], *, workers: int | None = None) -> str | None:
    """Return the path of an optimizer's or a model's state that a process of DeepSpeed has not written; None
    if none is missing. In this format each process writes one, so a gap proves that a save was cut off.
    """
    return next(_deepspeed(set(paths), workers), None)


def missing_rank(paths: Collection[str], *, workers: int | None = None) -> str | None:
    """Return the path of a file that another process should have written and that is not there; None if no
    such file is known. `workers`: the number of processes, None if it is not known.
    """
    return next(_missing(paths, workers), None)


def _missing(paths: Collection[str], workers: int | None) -> Iterator[str]:
    there = set(paths)
    yield from _gaps(there, workers)
    yield from _deepspeed(there, workers)
    yield from _numbered_of(there)


def _gaps(there: set[str], workers: int | None) -> Iterator[str]:
    """Yield files of a series by rank that are missing: its numbers have a gap, or it is shorter than the
    number of processes.
    """
    series: dict[tuple[str, str], dict[int, int]] = {}
    for path in there:
        found = list(_RANK.finditer(path))
        if len(found) != 1:
            continue  # several kinds of ranks: which ones go together depends on the layout
        digits = found[0][1]
        key = path[: found[0].start(1)], path[found[0].end(1) :]
        series.setdefault(key, {})[int(digits)] = len(digits)
    for (before, after), ranks in series.items():
        if len(ranks) == 1 and 0 not in ranks:
            continue  # a single file of one rank need not be one of many
        first, of = min(ranks) if min(ranks) <= 1 else 0, max(ranks) + 1
        if first == 0:
            of = max(
                of,
                min(
                    next((int(one[1]) for one in _OF.finditer(before + after) if one[1] is not None), None)
                    or 0,
                    RANKS_MAX,
                ),
                workers if workers is not None and len(ranks) > 1 else 0,
            )
        gap = next((rank for rank in range(first, min(of, RANKS_MAX)) if rank not in ranks), None)
        if gap is not None:
            widths = set(ranks.values())
            yield f"{before}{gap:0{max(widths) if len(widths) == 1 else 1}d}{after}"


def _deepspeed(there: set[str], workers: int | None) -> Iterator[str]:
    """Yield the optimizer states that a process of DeepSpeed has not written: as many of them as processes,
    the same number for each part of the model, and a file with each part itself.
    """
    ranks: dict[str, dict[int, set[int]]] = {}
    names: dict[str, str] = {}
    for path in there:
        found = _DEEPSPEED.fullmatch(path)
        if found is not None:
            folder = found[1] or ""
            ranks.setdefault(folder, {}).setdefault(int(found[3]), set()).add(int(found[2]))
            names[folder] = path.removeprefix(folder)
    for folder, parts in ranks.items():
        count = max(1 + max(data) for data in parts.values())
        if workers is not None and len(parts) * count < workers:
            count = -(-workers // len(parts))
        prefix = names[folder].partition("zero_pp_rank_")[0]
        for part in range(1 + max(parts)):
            for rank in range(min(count, RANKS_MAX)):
                if rank not in parts.get(part, set()):
                    yield f"{folder}{prefix}zero_pp_rank_{rank}_mp_rank_{part:02d}_optim_states.pt"
            models = (
                f"mp_rank_{part:02d}_model_states.pt",
                f"zero_pp_rank_0_mp_rank_{part:02d}_model_states.pt",
            )
            if not any(f"{folder}{model}" in there for model in models):
                yield f"{folder}{models[0]}"


def _numbered_of(there: Iterable[str]) -> Iterator[str]:
    """Yield parts named like model-00001-of-00003.safetensors that are missing. A number may begin with 0 or
    1.
    """
    series: dict[tuple[str, str, str, int], set[int]] = {}
    for path in there:
        found = [one for one in _OF.finditer(path) if one[2] is not None]
        if len(found) == 1:
            one = found[0]
            key = path[: one.start(2)], path[one.end(2) : one.start(3)], path[one.start(3) :], int(one[3])
            series.setdefault(key, set()).add(int(one[2]))
    for (before, between, after, count), numbers in series.items():
        if not 1 <= count <= RANKS_MAX or max(numbers) > count:
            continue
        first = 0 if 0 in numbers else 1
        gap = next((number for number in range(first, first + count) if number not in numbers), None)
        if gap is not None:
            width = len(after) - len(after.lstrip("0123456789"))
            yield f"{before}{gap:0{width}d}{between}{after}"
