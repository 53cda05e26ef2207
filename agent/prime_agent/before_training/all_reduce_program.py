"""Adds up a tensor over several processes, one per GPU, by torch's own collectives: what every training on
several GPUs does first.

A program for the trainer's Python, which need not have this project's packages: only the standard library and
torch are imported. It prints one line of JSON, `MARK {"state": "ok" | "skipped" | "fault", "text": ...}`.
Where torch sees no GPU, the processes use gloo on the CPU.
"""

import contextlib
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MARK = "all-reduce:"
START_S_MAX = 240.0
"""Seconds until each process has imported torch and found its GPU; on a machine with cold disks that takes
most of a minute.
"""
LIMIT_S = 120.0
"""Seconds for the all-reduce itself, which takes a few; NCCL's own limit is longer."""
ELEMENTS = 2**24
ROUNDS = 5
POLL_S = 0.1
TEXT_CHARS_MAX = 400


def check(count: int, start_s: float, limit_s: float) -> "tuple[str, str]":
    """Return the state and its reason, for `count` processes at most."""
    try:
        import torch

        visible = torch.cuda.device_count()
    except Exception as error:
        return "skipped", f"torch cannot be imported by {sys.executable}: {_words(error)}"
    if visible == 1:
        return "skipped", "torch sees one GPU"
    world = min(count, visible) or count
    backend = "nccl" if visible else "gloo"
    with tempfile.TemporaryDirectory(prefix="prime-train-") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        ranks = []
        for rank in range(world):
            command = [sys.executable, __file__, "rank", str(rank), str(world), backend, name, str(limit_s)]
            errors = stack.enter_context((folder / f"stderr-{rank}").open("wb"))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
            stack.callback(_end, process)
            ranks.append(process)
        return _await(folder, ranks, backend, start_s, limit_s)


def _await(
    folder: pathlib.Path, ranks: "list[subprocess.Popen[bytes]]", backend: str, start_s: float, limit_s: float
) -> "tuple[str, str]":
    on = (
        f"{backend} on {len(ranks)} "
        f"{'GPUs' if backend == 'nccl' else 'processes without GPUs, because torch sees none'}"
    )
    until_s = time.monotonic() + start_s
    while not all((folder / f"ready-{rank}").exists() for rank in range(len(ranks))):
        if (rank := _failed(ranks)) is not None:
            error = _error(folder, ranks, rank)
            is_fault = (folder / f"ready-{rank}").exists()
            return (
                ("fault", f"{on}: process {rank} failed: {error}")
                if is_fault
                else ("skipped", f"process {rank} cannot start: {error}")
            )
        if time.monotonic() > until_s:
            return "skipped", f"torch was not ready within {start_s:.0f} s"
        time.sleep(POLL_S)
    until_s = time.monotonic() + limit_s
    while any(process.poll() is None for process in ranks):
        if (rank := _failed(ranks)) is not None:
            return "fault", f"{on}: process {rank} failed: {_error(folder, ranks, rank)}"
        if time.monotonic() > until_s:
            late = [str(rank) for rank, process in enumerate(ranks) if process.poll() is None]
            return "fault", f"{on}: no sum within {limit_s:.0f} s (processes {', '.join(late)} still wait)"
        time.sleep(POLL_S)
    if (rank := _failed(ranks)) is not None:
        return "fault", f"{on}: process {rank} failed: {_error(folder, ranks, rank)}"
    return "ok", f"{on}: {(folder / 'speed').read_text()}"


def _failed(ranks: "list[subprocess.Popen[bytes]]") -> "int | None":
    return next((rank for rank, process in enumerate(ranks) if process.poll() not in (None, 0)), None)


def _error(folder: pathlib.Path, ranks: "list[subprocess.Popen[bytes]]", rank: int) -> str:
    code = ranks[rank].returncode
    said = folder / f"error-{rank}"
    text = (
        said.read_text()
        if said.exists()
        else (folder / f"stderr-{rank}").read_bytes().decode(errors="replace").strip()
    )
    ended = f"signal {-code}" if code < 0 else f"code {code}"
    return f"{text[-TEXT_CHARS_MAX:]} ({ended})".strip()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    # A process that waits in the driver may not end before the driver answers.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(2)


def rank_main(rank: int, world: int, backend: str, folder: pathlib.Path, limit_s: float) -> None:
    try:
        _sum(rank, world, backend, folder, limit_s)
    except Exception as error:
        (folder / f"error-{rank}").write_text(_words(error), errors="replace")
        raise


def _sum(rank: int, world: int, backend: str, folder: pathlib.Path, limit_s: float) -> None:
    import torch
    import torch.distributed as dist

    device = "cpu"
    if backend == "nccl":
        torch.cuda.set_device(rank)
        device = f"cuda:{rank}"
    ones = torch.ones(ELEMENTS, device=device)
    (folder / f"ready-{rank}").touch()
    limit = datetime.timedelta(seconds=limit_s)
    dist.init_process_group(
        backend, init_method=f"file://{folder}/store", rank=rank, world_size=world, timeout=limit
    )
    dist.all_reduce(ones)
    least, most = ones.min().item(), ones.max().item()
    if (least, most) != (world, world):
        raise ValueError(f"the sum of {world} ones is between {least} and {most}")
    began_s = time.monotonic()
    for _ in range(ROUNDS):
        dist.all_reduce(ones)
    if backend == "nccl":
        torch.cuda.synchronize()
    size, took_s = ones.numel() * ones.element_size(), time.monotonic() - began_s
    if rank == 0:
        (folder / "speed").write_text(f"{size / 2**20:.0f} MiB at {size * ROUNDS / 1e9 / took_s:.1f} GB/s")
    dist.barrier()
    dist.destroy_process_group()


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:TEXT_CHARS_MAX]


def main(words: "list[str]") -> None:
    # The folder of this file has modules of other names; the working tree, too, and it is not what is
    # checked.
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 # the same spelling as in sys.path
    sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != here]  # noqa: PTH100
    if words[0] == "rank":
        rank_main(int(words[1]), int(words[2]), words[3], pathlib.Path(words[4]), float(words[5]))
    else:
        state, text = check(int(words[0]), float(words[1]), float(words[2]))
        print(MARK, json.dumps({"state": state, "text": text}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
