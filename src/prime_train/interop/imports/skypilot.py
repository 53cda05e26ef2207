"""A SkyPilot task: `resources`, `setup` and `run`."""

import re
from collections.abc import Iterator

from prime_train.interop.imports.draft import ONE_MACHINE, Draft, Section, in_bash, name_of
from prime_train.interop.imports.gpus import count_of, is_other_chip, kind_of
from prime_train.interop.imports.needs import list_needs, list_unset, numbered
from prime_train.interop.imports.quantities import gib_of, usd_of
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, TreeEntry

_PLACE = "machines are rented from the providers that the control plane has, wherever they are the cheapest"
_WHY = {
    "event_callback": "see alerts",
    "inputs": "an estimate of SkyPilot, which decides where it is cheapest",
    "outputs": "an estimate of SkyPilot, which decides where it is cheapest",
    "api_server": "it changes SkyPilot itself",
}
_REFUSED = {
    "volumes": "a machine's disk ends with it, and nothing is mounted there: fetch what the commands read under "
    "setup; checkpoints and outputs are kept in the bucket",
    "service": "prime-train trains and serves nothing: leave it out if the commands train",
    "pool": "a run has a machine of its own: leave it out, and launch the runs one by one",
    "experimental": "it changes SkyPilot itself, and may change what runs: delete it if it does not",
    "config": "it changes SkyPilot itself, and may change what runs: delete it if it does not",
}
_MOUNTED = "in the file, a bucket is mounted there: "
_WRITABLE = ("MOUNT", "MOUNT_CACHED")
_BUCKET = ("s3://", "gs://", "r2://", "cos://", "oci://", "nebius://", "https://", "http://")
_WHY_RESOURCE = {
    **dict.fromkeys(("cloud", "region", "zone", "infra"), _PLACE),
    **dict.fromkeys(("cpus", "memory"), "machines are chosen by their GPUs, disk and price"),
    **dict.fromkeys(
        ("spot_recovery", "job_recovery", "autostop"),
        "lost machines are replaced, and machines are given back, in any case",
    ),
    "ports": "no port of a machine is open to others",
    "labels": "see tags",
    "priority": "every run gets a machine of its own",
    "network_tier": "a run has one machine",
    "local_disk": "see hardware.disk_mb_per_s_min",
    "disk_tier": "see hardware.disk_mb_per_s_min",
}
_INSTANCE = (
    "machines are chosen by their GPUs, and this type may have some: write accelerators, or hardware.gpus and "
    "hardware.count"
)
_REFUSED_RESOURCE = {"accelerator_args": "only NVIDIA's GPUs are rented: name one under hardware.gpus"}


def read_skypilot(draft: Draft, root: Mapping) -> None:
    """Fill the draft with the task."""
    top = Section(draft, root)
    draft.name = name_of(top.text("name"))
    nodes = top.take("num_nodes")
    if nodes is not None and not (isinstance(nodes.value, Scalar) and nodes.value.value == 1):
        draft.refuse(nodes, "num_nodes", ONE_MACHINE)
    _mounts(draft, top.take("file_mounts"))
    _workdir(draft, top.take("workdir"))
    _variables(draft, top)
    _resources(draft, top.section("resources"))
    setup, run = top.take("setup"), top.take("run")
    if setup is not None:
        draft.setup = [script for script in [_script(draft, setup)] if script]
    if run is not None:
        draft.command = _script(draft, run)
    _own_variables(draft)
    for entry in (setup, run):
        if entry is not None and isinstance(entry.value, Scalar):
            lines = numbered(entry.value, entry.value.text)
            list_needs(draft, lines, entry.key)
            list_unset(draft, lines, entry.key, "SKY(?:PILOT)?")
            draft.lines.append((entry.key, lines))
    top.close(_WHY, _REFUSED)


def _script(draft: Draft, entry: TreeEntry) -> str:
    if not isinstance(entry.value, Scalar):
        draft.refuse(entry, entry.key, "commands are expected here, as one text")
        return ""
    text = draft.without_secrets(entry.value, entry.value.text.rstrip(), entry.key)
    if not draft.has_code and re.search(r"(?<![\w/])~/|\$HOME\b|\$\{HOME\}", text):
        # Without a workdir, SkyPilot starts commands in the home folder.
        text = f"cd ~\n{text}"
    if "sky_workdir" in text:
        why = "commands run in the working tree, which is in no folder of this name: write . in its place"
        draft.refuse(entry, entry.key, f"~/sky_workdir: {why}")
    return in_bash(text)


def _mounts(draft: Draft, entry: TreeEntry | None) -> None:
    """List what is mounted, as nothing is there on a rented machine. A bucket that the command can write to is
    where it saves, as a rule.
    """
    if entry is None:
        return
    if not isinstance(entry.value, Mapping):
        draft.refuse(entry, "file_mounts", "folders and what they show are expected here")
        return
    for mount in entry.value.entries:
        found, what = mount.value, f"file_mounts.{mount.key}"
        is_bucket = isinstance(found, Mapping) or _is_remote(found)
        mode = found.entry("mode") if isinstance(found, Mapping) else None
        how = mode.value.text.upper() if mode is not None and isinstance(mode.value, Scalar) else "MOUNT"
        if isinstance(found, Mapping) and how in _WRITABLE:
            draft.mounted.append(mount.key)
            why = (
                f"{_MOUNTED}if the command saves there, let it save to a folder of checkpoints, which are kept "
                "in the run's own bucket; fetch what it reads there under setup"
            )
        elif is_bucket:
            why = "in the file, it has the content of a bucket: fetch that under setup"
        elif isinstance(found, Scalar) and found.text.startswith(("~", "/")):
            why = (
                "it is a file of your own machine, outside of the working tree, and none of these goes along: name "
                "secrets under secrets, and put what else is read into the working tree"
            )
        else:
            why = (
                "files come with the working tree, and are at no other path: add to setup a command such as "
                f'mkdir -p FOLDER && ln -s "$PWD/FILES" {mount.key[:60]}'
            )
        draft.refuse(mount, what, why)


def _is_remote(source: Node) -> bool:
    """Return whether the source of a mount is a bucket, or something else on the network."""
    return isinstance(source, Scalar) and source.text.startswith(_BUCKET)


def _workdir(draft: Draft, entry: TreeEntry | None) -> None:
    match entry.value if entry is not None else None:
        case None:
            return
        case Scalar(text=folder):
            draft.code = {"folder": folder} if folder.rstrip("/") not in ("", ".") else {}
            draft.has_code = True
        case Mapping() as tree:
            git = Section(draft, tree, "workdir")
            repo, ref = git.text("url"), git.text("ref")
            draft.code = {key: value for key, value in (("repo", repo), ("ref", ref)) if value}
            git.close({})
            draft.has_code = True
        case Listing() as other:
            draft.refuse(other, "workdir", "a folder or a repository is expected here")


def _variables(draft: Draft, top: Section) -> None:
    for entry in top.section("envs").rest():
        draft.variable(entry.key, entry.value, f"envs.{entry.key}")
    for entry in top.section("secrets").rest():
        draft.secret(entry.key, entry, f"secrets.{entry.key}")
        if isinstance(entry.value, Scalar) and entry.value.value is not None:
            draft.leave(
                entry,
                f"secrets.{entry.key}",
                f"no config contains the value of a secret: set {entry.key} where the control plane runs",
            )


def _own_variables(draft: Draft) -> None:
    """Set those variables of SkyPilot that the commands use, as they are on one machine."""
    own = {
        "SKYPILOT_NUM_GPUS_PER_NODE": str(draft.count or 0),
        "SKYPILOT_NUM_NODES": "1",
        "SKYPILOT_NODE_RANK": "0",
        "SKYPILOT_NODE_IPS": "127.0.0.1",
        "SKYPILOT_SETUP_NUM_GPUS_PER_NODE": str(draft.count or 0),
        "SKYPILOT_SETUP_NODE_RANK": "0",
        "SKYPILOT_SETUP_NODE_IPS": "127.0.0.1",
    }
    used = "\n".join([*draft.setup, draft.command])
    draft.environment.update({name: value for name, value in own.items() if name in used})


def _resources(draft: Draft, found: Section) -> None:
    alternatives = [(key, found.take(key)) for key in ("any_of", "ordered")]
    spots = set(_one(draft, found))
    for key, entry in alternatives:
        if entry is not None and not isinstance(entry.value, Listing):
            draft.refuse(entry, found.name(key), "a list is expected here")
        for item in entry.value.items if entry is not None and isinstance(entry.value, Listing) else ():
            spots |= set(_one(draft, Section(draft, item, found.name(key))))
    draft.spot = "prefer" if len(spots) > 1 else "only" if spots == {True} else "never"


def _one(draft: Draft, found: Section) -> Iterator[bool]:
    """Take over one set of resources, and yield whether it asks for spot machines, if it says so."""
    spot = found.text("use_spot")
    if spot:
        yield spot.lower() in ("true", "yes", "on")
    accelerators = found.take("accelerators")
    if accelerators is not None:
        for name, count in _accelerators(accelerators.value):
            _add(draft, accelerators, found.name("accelerators"), name, count)
    disk = found.take("disk_size")
    if disk is not None:
        gib = gib_of(disk.value.text) if isinstance(disk.value, Scalar) else None
        if gib is None:
            draft.refuse(disk, found.name("disk_size"), "this is not a size: write hardware.disk_gib")
        else:
            draft.disk_gib = max(gib, draft.disk_gib or 0)
    cost = found.take("max_hourly_cost")
    if cost is not None:
        draft.usd_per_hour_max = usd_of(cost.value.text) if isinstance(cost.value, Scalar) else None
        if draft.usd_per_hour_max is None:
            draft.leave(cost, found.name("max_hourly_cost"), "this is not a number of dollars")
    image = found.take("image_id")
    if image is not None:
        text = image.value.text if isinstance(image.value, Scalar) else ""
        if text.startswith("docker:"):
            draft.set_image(text, image, found.name("image_id"))
        else:
            draft.names_image = True
            why = "it is an image of one cloud: write hardware.image, or delete it if the commands need nothing of it"
            draft.refuse(image, found.name("image_id"), why)
    instance = found.take("instance_type")
    if instance is not None:
        if draft.gpus:
            draft.leave(
                instance, found.name("instance_type"), "machines are chosen by their GPUs, disk and price"
            )
        else:
            draft.refuse(instance, found.name("instance_type"), _INSTANCE)
    found.close(_WHY_RESOURCE, _REFUSED_RESOURCE)


def _accelerators(node: Node) -> Iterator[tuple[str, str]]:
    """Yield name and number of each kind: `H100:8`, a mapping of names and numbers, or a list of
    alternatives.
    """
    match node:
        case Scalar(text=text):
            name, _, count = text.partition(":")
            yield name, count or "1"
        case Mapping(entries=entries):
            for entry in entries:
                if isinstance(entry.value, Scalar):
                    # A set, such as {A100:1, H100:1}, has keys with the number in them and no value.
                    name, _, count = entry.key.partition(":")
                    yield name, entry.value.text if entry.value.value is not None else count or "1"
        case Listing(items=items):
            for item in items:
                yield from _accelerators(item)


def _add(draft: Draft, entry: TreeEntry, what: str, name: str, text: str) -> None:
    kind, count = kind_of(name), count_of(text)
    if is_other_chip(name):
        draft.refuse(entry, what, f"{name[:40]} is no NVIDIA GPU; only those are rented")
    elif count is None:
        why = f"{text[:20]!r} is not a number of GPUs of one machine: write hardware.count"
        draft.refuse(entry, what, why)
    elif not kind:
        draft.refuse(
            entry,
            what,
            f"{name[:40]!r} is no kind of GPU that prime-train knows: write hardware.gpus and hardware.count",
        )
    elif draft.count not in (None, count):
        draft.leave(
            entry,
            what,
            f"{count} GPUs of kind {kind} besides {draft.count} of another: see hardware.variants",
        )
    else:
        draft.count = count
        draft.gpus += [kind] if kind not in draft.gpus else []
