"""A dstack task: `type: task`, `commands` and `resources`."""

import re
import shlex

from prime_train.errors import UsageError
from prime_train.interop.imports.draft import INSTALLS, ONE_MACHINE, Draft, Section, in_bash, name_of
from prime_train.interop.imports.gpus import count_of, kind_of
from prime_train.interop.imports.quantities import gib_of, hours_of, lower_end, usd_of
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, TreeEntry

_PLACE = "machines are rented from the providers that the control plane has, wherever they are the cheapest"
_WHY = {
    **dict.fromkeys(
        ("backends", "regions", "availability_zones", "instance_types", "fleets", "reservation"), _PLACE
    ),
    **dict.fromkeys(
        ("retry", "creation_policy", "idle_duration", "utilization_policy"),
        "lost machines are replaced in any case",
    ),
    **dict.fromkeys(
        ("volumes", "files"),
        "files come with the working tree; checkpoints and outputs are kept in the bucket",
    ),
    **dict.fromkeys(
        ("python", "nvcc", "docker", "privileged", "user", "shell"), "it is about dstack's image; see image"
    ),
    "registry_auth": "see hardware.image",
    "ports": "no port of a machine is open to others",
    "tags": "see tags",
    "priority": "every run gets a machine of its own",
    "stop_duration": "see trainer.stop_s",
    "schedule": "a run is launched by hand, by Python, or from GitHub",
}
_WHY_RESOURCE = dict.fromkeys(
    ("cpu", "memory", "shm_size"), "machines are chosen by their GPUs, disk and price"
)
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
    _price_and_time(draft, top)
    _resources(draft, top.section("resources"))
    _commands(draft, top)
    top.close(_WHY)


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
                    draft.leave(item, "env", "a line such as NAME=value is expected here")
        case None:
            return
        case other:
            draft.leave(other, "env", "variables are expected here")


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
            draft.leave(item, "repos", "a run has one working tree")
            continue
        if re.match(r"(https?|git|ssh)[:@]", folder):
            folder, url = "", folder
        if url:
            draft.code = {"repo": url, **({"ref": ref} if ref else {})}
        elif folder not in (".", "./", ".."):
            draft.code = {"folder": folder}
        if found is not None:
            found.close({"path": "the working tree is the folder in which commands run"})


def _price_and_time(draft: Draft, top: Section) -> None:
    policy = top.take("spot_policy")
    if policy is not None:
        text = policy.value.text if isinstance(policy.value, Scalar) else ""
        if text in _SPOT:
            draft.spot = _SPOT[text]
        else:
            draft.leave(policy, "spot_policy", "spot, on-demand or auto is expected here")
    price = top.take("max_price")
    if price is not None:
        draft.usd_per_hour_max = usd_of(price.value.text) if isinstance(price.value, Scalar) else None
        if draft.usd_per_hour_max is None:
            draft.leave(price, "max_price", "this is not a number of dollars")
    longest = top.take("max_duration")
    if longest is not None and not (
        isinstance(longest.value, Scalar) and longest.value.text in ("off", "false")
    ):
        draft.hours = hours_of(longest.value.text) if isinstance(longest.value, Scalar) else None
        if draft.hours is None:
            draft.leave(longest, "max_duration", "this is not a duration; see budget.hours")


def _commands(draft: Draft, top: Section) -> None:
    """Take over the commands. Those at the start that only install something become commands of `setup`."""
    found = top.take("commands")
    items = found.value.items if found is not None and isinstance(found.value, Listing) else ()
    for item in items:
        if not isinstance(item, Scalar):
            draft.leave(item, "commands", "a command is expected here")
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
            draft.leave(folder, "working_dir", "commands run in the working tree; see trainer.code")
    # dstack joins them by &&: the first that fails ends the task.
    draft.command = in_bash("\n".join(["set -e", *lines] if len(lines) > 1 else lines))
    own = {
        "DSTACK_GPUS_NUM": str(draft.count or 0),
        "DSTACK_GPUS_PER_NODE": str(draft.count or 0),
        "DSTACK_NODES_NUM": "1",
    }
    own |= {"DSTACK_NODE_RANK": "0", "DSTACK_MASTER_NODE_IP": "127.0.0.1"}
    draft.environment.update({name: value for name, value in own.items() if name in draft.command})


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
            draft.leave(disk, "resources.disk", "this is not a size")
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
                elif part.lower() not in ("nvidia", "gpu"):
                    names += [name for name in part.split(",") if name.strip()]
        case Mapping() as tree:
            inner = Section(draft, tree, "resources.gpu")
            vendor, name = inner.text("vendor"), inner.take("name")
            if vendor and vendor.lower() != "nvidia":
                draft.leave(entry, "resources.gpu.vendor", "only NVIDIA's GPUs are rented")
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
                {
                    "compute_capability": "machines are chosen by their kind of GPU",
                    "total_memory": "see hardware.variants",
                }
            )
        case other:
            draft.leave(other, "resources.gpu", "a kind of GPU is expected here")
            return
    low, has_end = lower_end(memory)
    is_exact = ".." not in memory
    gb = int(match[1]) if (match := re.match(r"([0-9]{1,4})", low)) else 0
    number, more = lower_end(count or "1")
    draft.count = count_of(number)
    if draft.count is None:
        draft.leave(entry, "resources.gpu", f"{count[:20]!r} is not a number of GPUs of one machine")
        return
    if has_end or more:
        draft.leave(entry, "resources.gpu", "of a range, only the lower end is used; see hardware.variants")
    for word in names:
        exact = kind_of(word, gb) if gb and is_exact else ""
        kind = exact or kind_of(word)
        if kind:
            draft.gpus += [kind] if kind not in draft.gpus else []
            draft.gpu_gb_min = gb if gb and not exact else draft.gpu_gb_min
        else:
            draft.leave(
                entry,
                "resources.gpu",
                f"{word[:40]!r} is no kind of GPU that prime-train knows: write hardware.gpus",
            )
    if not names:
        draft.gpu_gb_min = gb
