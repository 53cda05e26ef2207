"""The files that an exported task brings to its machine."""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from prime_train.launch.code.archive import CodeSnapshot, pack
from prime_train.launch.launch import LaunchPlan, Unfit
from prime_train.providers.install.agent_bundle import BRING_UP
from prime_train.providers.install.agent_bundle import pack as agent_parcel
from prime_train.spec.choices import Spot
from prime_train.spec.spec import RunSpec

CONFIG, CODE, SCRIPT = "config.json", "code.tar.gz", "bring_up.sh"
PRICE = "usd_per_hour"
"""The key of the highest price of a machine, beside the config."""
PART_BYTES_MAX = 700_000
"""Bytes of one part of a large file: Kubernetes allows 1 MiB of base64 in an object."""
DIGEST_CHARS = 8
MAINS = ("task.yaml", "job.yaml", "task.dstack.yml")
"""Names of the main files of tasks."""
HEADER = "# Exported by prime-train; its docs/export.md explains this file.\n"
"""How they begin."""


@dataclass(frozen=True)
class MachineFiles:
    """The files by name. `task`: the name by which the machines of a task find each other's runs; `digest`:
    that of the agent's files.
    """

    task: str
    digest: str
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


def machine_files(spec: RunSpec, plan: LaunchPlan, usd_per_hour: float | None) -> MachineFiles:
    """Return the files. The task's name is made of the run's name, the config and the code: the same training
    has the same name, and so it goes on where it was left, also with another budget. `usd_per_hour`: the
    highest price of a machine, None if none is known. Raises Unfit if the code cannot be packed.
    """
    agent, snapshot = agent_parcel(), None if plan.snapshot is None else _without_tasks(plan.snapshot)
    config = on_machine(spec, plan.commit).model_dump(mode="json", exclude_defaults=True)
    training = {name: value for name, value in config.items() if name != "budget"}
    task = f"{spec.name}-{_digest(training, snapshot)[:DIGEST_CHARS]}"
    content = {"task": task, "config": config, PRICE: usd_per_hour}
    files = {SCRIPT: BRING_UP.read_bytes(), CONFIG: json.dumps(content, indent=1).encode()}
    for name, data in agent.files.items():
        if name.endswith(".whl"):
            files |= {"wheel-name": name.encode(), **parts_of("wheel", data)}
        else:
            files[name] = data
    if snapshot is not None:
        files |= parts_of(CODE, _packed(snapshot))
    return MachineFiles(task, agent.digest, files)


def on_machine(spec: RunSpec, commit: str) -> RunSpec:
    """Return the config as the task's machine runs it: on itself, at this commit if the code comes from a
    repository. Which machine that is, is the other tool's to choose.
    """
    chosen = spec.variant(0) if spec.hardware.variants else spec
    own: dict[str, object] = {
        "provider": "local",
        "providers": (),
        "image": None,
        "spot": Spot.PREFER,
        "usd_per_hour_max": None,
        "volumes": {},
    }
    values = chosen.model_dump(mode="json") | {"image": None}
    values["hardware"] |= own
    code = values["trainer"]["code"]
    code |= {"ref": commit} if code["repo"] else {"folder": "."}
    return RunSpec.model_validate_json(json.dumps(values))


def parts_of(name: str, data: bytes) -> dict[str, bytes]:
    """Return the parts of a file, which put together in the order of their names are the file."""
    starts = range(0, max(len(data), 1), PART_BYTES_MAX)
    return {
        f"{name}.{number:03d}": data[start : start + PART_BYTES_MAX] for number, start in enumerate(starts)
    }


def _without_tasks(snapshot: CodeSnapshot) -> CodeSnapshot:
    """Return the snapshot without the folders that earlier exports have written into the working tree."""
    mains = [PurePosixPath(name) for name, _ in snapshot.files if PurePosixPath(name).name in MAINS]
    written = [path.parent for path in mains if _is_written_by_us(snapshot.folder / path)]
    kept = [
        (name, size)
        for name, size in snapshot.files
        if not any(PurePosixPath(name).is_relative_to(one) for one in written)
    ]
    return replace(snapshot, files=tuple(kept))


def _is_written_by_us(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(HEADER.encode())) == HEADER.encode()


def _digest(config: Mapping[str, object], snapshot: CodeSnapshot | None) -> str:
    """Return the hash of a training: of its config and of its files, whenever those were written."""
    hashed = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name, _ in sorted(snapshot.files if snapshot is not None else ()):
        path = snapshot.folder / name if snapshot is not None else Path(name)
        content = path.readlink().as_posix().encode() if path.is_symlink() else path.read_bytes()
        hashed.update(f"{name}\0{len(content)}\0".encode() + content)
    return hashed.hexdigest()


def _packed(snapshot: CodeSnapshot) -> bytes:
    with tempfile.TemporaryDirectory(prefix="prime-train-") as folder:
        packed = Path(folder) / CODE
        finding = pack(snapshot, packed)
        if finding is not None:
            raise Unfit((finding,))
        return packed.read_bytes()
