"""A dstack task: `type: task`, `commands` and `resources`."""

import re
import shlex

from prime_train.errors import UsageError
from prime_train.interop.imports.draft import INSTALLS, ONE_MACHINE, Draft, Section, in_bash, name_of
from prime_train.interop.imports.gpus import count_of, is_other_chip, kind_of
from prime_train.interop.imports.needs import OTHER_CHIPS, list_needs, list_unset, numbered
from prime_train.interop.imports.quantities import gib_of, hours_of, lower_end, usd_of
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, TreeEntry

_PLACE = "machines are rented from the providers that the control plane has, wherever they are the cheapest"
_WHY = {
    **dict.fromkeys(
        (
            *("backends", "regions", "availability_zones", "instance_types", "instances", "fleets"),
            *("reservation", "spot_duration"),
        ),
        _PLACE,
    ),
    **dict.fromkeys(
        ("retry", "creation_policy", "idle_duration", "utilization_policy"),
        "lost machines are replaced in any case",
    ),
    **dict.fromkeys(("startup_order", "stop_criteria"), "a run has one machine"),
    "privileged": "a rented machine has no other users",
    "ports": "no port of a machine is open to others",
    "tags": "see tags",
    "priority": "every run gets a machine of its own",
    "stop_duration": "see trainer.stop_s",
    "schedule": "a run is launched by hand, by Python, or from GitHub",
}
_REFUSED = {
    "volumes": "nothing is mounted on a rented machine: fetch what the commands read under setup; checkpoints and "
    "outputs are kept in the bucket",
    "nvcc": "dstack's image has CUDA's compiler: write a hardware.image that has it",
    "docker": "a rented machine may be a container itself, without Docker: write the image as hardware.image",
    "user": "commands run as the user of the machine: leave it out if they may",
    "entrypoint": "commands run by themselves: write it before them",
    "registry_auth": "the image is private: see hardware.image on how a provider gets it",
    "model": "prime-train trains and serves nothing: leave it out if the commands train",
}
_PYTHON = (
    "dstack's image has this Python in an environment of its own: add under setup what makes one, such as "
    "uv venv --python {}, and let the commands use it"
)
_WHY_RESOURCE = dict.fromkeys(
    ("cpu", "memory", "shm_size"), "machines are chosen by their GPUs, disk and price"
)
_NO_COUNT = "{!r} is not a number of GPUs of one machine: write hardware.count"
_SPOT = {"spot": "only", "on-demand": "never", "auto": "prefer"}
_SECRET = re.compile(r"\$\{\{\s*secrets\.[A-Za-z0-9_-]+\s*\}\}")


def read_dstack(draft: Draft, root: Mapping) -> None:
    """Fill the draft with the task. Raises UsageError if the file describes something else than a task."""
    top = Section(draft, root)
    kind = top.text("type")
    if kind != "task":
        raise UsageError(
            f"this is a dstack file of type {kind[:40]!r}, but only a task ends by itself",
            fix="give a file with type: task",
        )
    draft.name = name_of(top.text("name"))
    nodes = top.take("nodes")
    if nodes is not None and not (isinstance(nodes.value, Scalar) and nodes.value.value == 1):
        draft.refuse(nodes, "nodes", ONE_MACHINE)
    _variables(draft, top.take("env"))
    _code(draft, top)
    image = top.take("image")
    if image is not None and isinstance(image.value, Scalar):
        draft.set_image(image.value.text, image, "image")
    python = top.take("python")
    if python is not None:
        text = python.value.text if isinstance(python.value, Scalar) else "3.12"
        draft.refuse(python, "python", _PYTHON.format(text[:10]))
    shell = top.text("shell")
    _price_and_time(draft, top)
    _resources(draft, top.section("resources"))
    _files(draft, top.take("files"))
    _commands(draft, top, shell)
    top.close(_WHY, _REFUSED)


def _variables(draft: Draft, entry: TreeEntry | None) -> None:
    match entry.value if entry is not None else None:
        case Mapping(entries=entries):
            for one in entries:
                _variable(draft, one.key, one.value)
        case Listing(items=items):
            for item in items:
                if isinstance(item, Scalar):
                    name, equals, text = item.text.partition("=")
                    _variable(draft, name.strip(), Scalar(item.place, text, text if equals else None))
                else:
                    draft.refuse(item, "env", "a line such as NAME=value is expected here")
        case None:
            return
        case other:
            draft.refuse(other, "env", "variables are expected here")


def _variable(draft: Draft, name: str, value: Node) -> None:
    if isinstance(value, Scalar) and _SECRET.search(value.text):
        draft.secret(name, value, f"env.{name}")
    else:
        draft.variable(name, value, f"env.{name}")


def _code(draft: Draft, top: Section) -> None:
    repos = top.take("repos")
    items = repos.value.items if repos is not None and isinstance(repos.value, Listing) else ()
    for number, item in enumerate(items):
        found = Section(draft, item, "repos") if isinstance(item, Mapping) else None
        folder = item.text if isinstance(item, Scalar) else found.text("local_path") if found else ""
        url, ref = (found.text("url"), found.text("hash") or found.text("branch")) if found else ("", "")
        if number or (not folder and not url):
            why = "a run has one working tree: clone the others under setup"
            draft.refuse(item, "repos", why)
            continue
        if re.match(r"(https?|git|ssh)[:@]", folder):
            folder, url = "", folder
        if url:
            draft.code = {"repo": url, **({"ref": ref} if ref else {})}
        elif folder not in (".", "./", ".."):
            draft.code = {"folder": folder}
        if found is not None:
            found.close({"path": "the working tree is the folder in which commands run"})
    if repos is not None and not isinstance(repos.value, Listing):
        draft.refuse(repos, "repos", "a list is expected here")


def _files(draft: Draft, entry: TreeEntry | None) -> None:
    """Take over files that are at the same path in the working tree, which goes along in any case."""
    items = entry.value.items if entry is not None and isinstance(entry.value, Listing) else ()
    for item in items:
        text = item.text.strip() if isinstance(item, Scalar) else ""
        if text not in (".", "./"):
            draft.copied.append((item, "files", text))
    if entry is not None and not isinstance(entry.value, Listing):
        draft.refuse(entry, "files", "a list is expected here")


def _price_and_time(draft: Draft, top: Section) -> None:
    policy = top.take("spot_policy")
    if policy is not None:
        text = policy.value.text if isinstance(policy.value, Scalar) else ""
        if text in _SPOT:
            draft.spot = _SPOT[text]
        else:
            draft.refuse(policy, "spot_policy", "spot, on-demand or auto is expected here")
    price = top.take("max_price")
    if price is not None:
        draft.usd_per_hour_max = usd_of(price.value.text) if isinstance(price.value, Scalar) else None
        if draft.usd_per_hour_max is None:
            draft.refuse(price, "max_price", "this is not a number of dollars")
    longest = top.take("max_duration")
    if longest is not None and not (
        isinstance(longest.value, Scalar) and longest.value.text in ("off", "false")
    ):
        draft.hours = hours_of(longest.value.text) if isinstance(longest.value, Scalar) else None
        if draft.hours is None:
            draft.refuse(longest, "max_duration", "this is not a duration; see budget.hours")


def _commands(draft: Draft, top: Section, shell: str) -> None:
    """Take over the commands. Those at the start that only install something become commands of `setup`.
    `shell`: what they are written for, if the file says so.
    """
    found = top.take("commands")
    items = found.value.items if found is not None and isinstance(found.value, Listing) else ()
    for item in items:
        if not isinstance(item, Scalar):
            draft.refuse(item, "commands", "a command is expected here")
    texts = [
        (item, draft.without_secrets(item, item.text.strip(), "commands"))
        for item in items
        if isinstance(item, Scalar)
    ]
    while texts[:-1] and INSTALLS.fullmatch(texts[0][1]):
        draft.setup.append(texts.pop(0)[1])
    lines = [text for _, text in texts if text]
    folder = top.take("working_dir")
    if folder is not None:
        if isinstance(folder.value, Scalar) and not folder.value.text.startswith(("/", "~")):
            lines = (
                [f"cd {shlex.quote(folder.value.text)}", *lines]
                if lines and folder.value.text not in (".", "./")
                else lines
            )
        else:
            why = "commands run in the working tree: write its folder in there as trainer.code.folder"
            draft.refuse(folder, "working_dir", why)
    # dstack joins them by &&: the first that fails ends the task.
    draft.command = in_bash("\n".join(["set -e", *lines] if len(lines) > 1 else lines))
    own = {
        "DSTACK_GPUS_NUM": str(draft.count or 0),
        "DSTACK_GPUS_PER_NODE": str(draft.count or 0),
        "DSTACK_NODES_NUM": "1",
        "DSTACK_NODES_IPS": "127.0.0.1",
        "DSTACK_RUN_NAME": draft.name,
    }
    own |= {"DSTACK_NODE_RANK": "0", "DSTACK_MASTER_NODE_IP": "127.0.0.1"}
    used = "\n".join([*draft.setup, draft.command])
    draft.environment.update({name: value for name, value in own.items() if name in used})
    if shell not in ("", "sh", "bash", "/bin/sh", "/bin/bash"):
        place = found if found is not None else folder
        if place is not None:
            draft.refuse(place, "shell", f"commands run by sh or bash, not by {shell[:20]!r}")
    where = folder.value.text if folder is not None and isinstance(folder.value, Scalar) else "."
    for item in items:
        if isinstance(item, Scalar):
            own_lines = numbered(item, item.text)
            list_needs(draft, own_lines, "commands")
            list_unset(draft, own_lines, "commands", "DSTACK")
            draft.lines += [("commands", own_lines)] if where in (".", "./") else []


def _resources(draft: Draft, found: Section) -> None:
    gpu = found.take("gpu")
    if gpu is not None:
        _gpu(draft, gpu)
    disk = found.take("disk")
    if disk is not None:
        text = (
            disk.value.text
            if isinstance(disk.value, Scalar)
            else Section(draft, disk.value, "resources.disk").text("size")
        )
        low, has_end = lower_end(text)
        draft.disk_gib = gib_of(low)
        if draft.disk_gib is None:
            draft.refuse(disk, "resources.disk", "this is not a size: write hardware.disk_gib")
        elif has_end:
            draft.leave(disk, "resources.disk", "a disk has a least size only")
    found.close(_WHY_RESOURCE)


def _gpu(draft: Draft, entry: TreeEntry) -> None:
    """Take over `gpu`: parts such as H100:80GB:8 in any order, a number alone, or a mapping."""
    names: list[str] = []
    memory, count = "", ""
    match entry.value:
        case Scalar(text=text):
            for part in text.split(":"):
                if (
                    gib_of(lower_end(part)[0])
                    and re.search(r"[a-z]b?\b", lower_end(part)[0], re.IGNORECASE)
                    and part[:1].isdigit()
                ):
                    memory = part
                elif re.fullmatch(r"[0-9]+(\.\.[0-9]*)?", part.strip()):
                    count = part
                elif part.lower() in ("amd", "google", "intel", "tenstorrent"):
                    draft.refuse(entry, "resources.gpu", OTHER_CHIPS)
                elif part.lower() not in ("nvidia", "gpu"):
                    names += [name for name in part.split(",") if name.strip()]
        case Mapping() as tree:
            inner = Section(draft, tree, "resources.gpu")
            vendor, name = inner.text("vendor"), inner.take("name")
            if vendor and vendor.lower() != "nvidia":
                draft.refuse(entry, "resources.gpu.vendor", OTHER_CHIPS)
            items = (
                name.value.items
                if name is not None and isinstance(name.value, Listing)
                else [name.value]
                if name is not None
                else []
            )
            names = [item.text for item in items if isinstance(item, Scalar)]
            memory, count = inner.text("memory"), inner.text("count")
            inner.close(
                {},
                {
                    "compute_capability": "machines are chosen by their kind of GPU: write hardware.gpus",
                    "total_memory": "write hardware.variants with count and gpu_gb_min",
                },
            )
        case other:
            draft.refuse(other, "resources.gpu", "a kind of GPU is expected here")
            return
    low, has_end = lower_end(memory)
    is_exact = ".." not in memory
    gb = int(match[1]) if (match := re.match(r"([0-9]{1,4})", low)) else 0
    number, more = lower_end(count or "1")
    draft.count = count_of(number)
    if draft.count is None:
        draft.refuse(entry, "resources.gpu", _NO_COUNT.format(count[:20]))
        return
    if has_end or more:
        draft.leave(entry, "resources.gpu", "of a range, only the lower end is used; see hardware.variants")
    for word in names:
        exact = kind_of(word, gb) if gb and is_exact else ""
        kind = exact or kind_of(word)
        if kind:
            draft.gpus += [kind] if kind not in draft.gpus else []
            draft.gpu_gb_min = gb if gb and not exact else draft.gpu_gb_min
        elif is_other_chip(word):
            draft.refuse(entry, "resources.gpu", f"{word[:40]} is no NVIDIA GPU; only those are rented")
        else:
            draft.refuse(
                entry,
                "resources.gpu",
                f"{word[:40]!r} is no kind of GPU that prime-train knows: write hardware.gpus",
            )
    if not names:
        draft.gpu_gb_min = gb
