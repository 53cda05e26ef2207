"""A Kubernetes Job: one container, its command, its variables and its GPUs."""

import re
import shlex
from collections.abc import Iterator

from prime_train.errors import UsageError
from prime_train.interop.imports.draft import ONE_MACHINE, Draft, Section, name_of
from prime_train.interop.imports.gpus import count_of, kind_of
from prime_train.interop.imports.quantities import gib_of, hours_of
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, TreeEntry

GPU = "nvidia.com/gpu"
_KINDS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/model", "accelerator")
"""Labels of nodes that tell the kind of GPU."""
_TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
_OTHER_CHIPS = "there are no TPUs or other accelerators than NVIDIA's GPUs for rent"
_CHIPS = (
    "google.com/tpu",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/",
    "aws.amazon.com/neuron",
    "huawei.com/Ascend",
)
"""Starts of the names by which pods ask for other accelerators."""
_SPOT = {
    "cloud.google.com/gke-spot": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
}
_REPLACED = "lost machines are replaced in any case, from the newest complete checkpoint"
_CLUSTER = "it is about a cluster; prime-train rents a machine for each attempt"
_DISK = "checkpoints and outputs are kept in the bucket; a claim with data sets goes under hardware.volumes"
_WHY_JOB = dict.fromkeys(
    (
        "backoffLimit",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "podFailurePolicy",
        "podReplacementPolicy",
        "successPolicy",
    ),
    _REPLACED,
) | {
    **dict.fromkeys(
        ("ttlSecondsAfterFinished", "suspend", "manualSelector", "selector", "managedBy", "completionMode"),
        _CLUSTER,
    ),
    **dict.fromkeys(("parallelism", "completions"), "a run has one machine"),
}
_WHY_POD = dict.fromkeys(
    (
        *(
            "affinity",
            "tolerations",
            "serviceAccountName",
            "serviceAccount",
            "priorityClassName",
            "schedulerName",
            "runtimeClassName",
        ),
        *(
            "imagePullSecrets",
            "hostNetwork",
            "hostIPC",
            "hostPID",
            "dnsPolicy",
            "securityContext",
            "topologySpreadConstraints",
        ),
    ),
    _CLUSTER,
) | {
    "volumes": _DISK,
    "restartPolicy": _REPLACED,
    "terminationGracePeriodSeconds": "see trainer.stop_s",
    "initContainers": "add what they prepare to setup",
}
_WHY_CONTAINER = dict.fromkeys(("volumeMounts", "volumeDevices"), _DISK) | {
    **dict.fromkeys(("securityContext", "imagePullPolicy", "lifecycle", "terminationMessagePath"), _CLUSTER),
    **dict.fromkeys(
        ("livenessProbe", "readinessProbe", "startupProbe"), "the agent watches the trainer; see health"
    ),
    "ports": "no port of a machine is open to others",
    "envFrom": "variables are listed one by one: add them to environment or secrets",
    "name": "a run has one container",
}


def read_kubernetes(draft: Draft, root: Mapping) -> None:
    """Fill the draft with the Job. Raises UsageError if the file describes another kind of object."""
    top = Section(draft, root)
    kind = top.text("kind")
    if kind != "Job":
        fix = "give a manifest with kind: Job; of a CronJob or another object, its jobTemplate as a Job"
        raise UsageError(f"this is a Kubernetes object of kind {kind[:40]!r}, not a Job", fix=fix)
    top.text("apiVersion")
    metadata = top.section("metadata")
    draft.name = name_of(metadata.text("name") or metadata.text("generateName"))
    metadata.close(dict.fromkeys(("labels", "annotations"), "see tags") | {"namespace": _CLUSTER})
    job = top.section("spec")
    for key in ("parallelism", "completions"):
        entry = job.take(key)
        if entry is not None and not (isinstance(entry.value, Scalar) and entry.value.value == 1):
            draft.refuse(entry, f"spec.{key}", ONE_MACHINE)
    seconds = job.text("activeDeadlineSeconds")
    draft.hours = hours_of(seconds) if seconds else None
    template = job.section("template")
    template.section("metadata").close(dict.fromkeys(("labels", "annotations"), "see tags"))
    _pod(draft, template.section("spec"))
    template.close({})
    job.close(_WHY_JOB)
    top.close({"status": "it is the state of the Job, not its description"})


def _pod(draft: Draft, pod: Section) -> None:
    for entry in pod.section("nodeSelector").rest():
        value = entry.value.text if isinstance(entry.value, Scalar) else ""
        if entry.key in _KINDS and kind_of(value):
            draft.gpus.append(kind_of(value))
        elif entry.key == _TPU_LABEL:
            draft.refuse(entry, pod.name(f"nodeSelector.{entry.key}"), _OTHER_CHIPS)
        elif _SPOT.get(entry.key) == value:
            draft.spot = "only"
        else:
            draft.leave(entry, pod.name(f"nodeSelector.{entry.key}"), _CLUSTER)
    containers = pod.take("containers")
    items = containers.value.items if containers is not None and isinstance(containers.value, Listing) else ()
    for item in items[1:]:
        draft.leave(item, pod.name("containers"), "a run has one container: the first one is used")
    if items:
        _container(draft, Section(draft, items[0], pod.name("containers[0]")))
    pod.close(_WHY_POD)


def _container(draft: Draft, found: Section) -> None:
    image = found.take("image")
    if image is not None and isinstance(image.value, Scalar):
        draft.set_image(image.value.text, image, found.name("image"))
    names = set()
    variables = found.take("env")
    for item in (
        variables.value.items if variables is not None and isinstance(variables.value, Listing) else ()
    ):
        names.add(_variable(draft, Section(draft, item, found.name("env")), item))
    folder = found.take("workingDir")
    if folder is not None:
        draft.leave(folder, found.name("workingDir"), "commands run in the working tree; see trainer.code")
    _command(draft, found, names)
    resources = found.section("resources")
    for which in ("requests", "limits"):
        _resources(draft, resources.section(which), resources.name(which))
    resources.close({})
    found.close(_WHY_CONTAINER)


def _variable(draft: Draft, found: Section, item: Node) -> str:
    """Take over a variable, and return its name."""
    name, value, source = found.text("name"), found.take("value"), found.section("valueFrom")
    of_secret = source.take("secretKeyRef")
    if of_secret is not None:
        draft.secret(name, item, found.name(name))
    elif value is not None:
        draft.variable(name, value.value, found.name(name))
    elif not source.rest():
        draft.variable(name, Scalar(item.place, "", ""), found.name(name))
    else:
        draft.leave(item, found.name(name), f"its value comes from the cluster: add {name} to environment")
    found.close({})
    return name


def _command(draft: Draft, found: Section, names: set[str]) -> None:
    """Take over command and arguments. A shell's script is taken as it is."""
    words: list[tuple[Node, str]] = []
    for key in ("command", "args"):
        entry = found.take(key)
        if entry is None:
            if key == "command":
                words = []
            continue
        items = entry.value.items if isinstance(entry.value, Listing) else (entry.value,)
        if key == "args" and not words:
            draft.leave(
                entry,
                found.name("args"),
                "they are arguments of the image's own program, which the manifest does not name: write it "
                "before",
            )
        words += [
            (item, draft.without_secrets(item, item.text, found.name(key)))
            for item in items
            if isinstance(item, Scalar)
        ]
    texts = [text for _, text in words]
    if len(texts) == 3 and texts[0].rpartition("/")[2] == "sh" and texts[1] == "-c":
        draft.command = _expanded(texts[2], names).strip()
    else:
        draft.command = " ".join(_word(text, names) for text in texts)


def _expanded(text: str, names: set[str]) -> str:
    """Return the text with the variables that Kubernetes would replace, $(NAME), as a shell writes them."""

    def shell(match: re.Match[str]) -> str:
        return (
            match[0][1:]
            if match[0].startswith("$$")
            else f"${{{match[1]}}}"
            if match[1] in names
            else match[0]
        )

    return re.sub(r"\$?\$\(([A-Za-z_][A-Za-z0-9_]*)\)", shell, text)


def _word(text: str, names: set[str]) -> str:
    """Return the argument as a word for a shell, in which only the variables of Kubernetes are replaced."""
    parts = list(_parts(text, names))
    if all(not is_variable for _, is_variable in parts):
        return shlex.quote("".join(part for part, _ in parts))
    return (
        '"'
        + "".join(part if is_variable else re.sub(r'([$`"\\])', r"\\\1", part) for part, is_variable in parts)
        + '"'
    )


def _parts(text: str, names: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of the text, and whether each is a variable."""
    at = 0
    for match in re.finditer(r"\$?\$\(([A-Za-z_][A-Za-z0-9_]*)\)", text):
        yield text[at : match.start()], False
        if match[0].startswith("$$"):
            yield match[0][1:], False
        elif match[1] in names:
            yield f"${{{match[1]}}}", True
        else:
            yield match[0], False
        at = match.end()
    yield text[at:], False


def _resources(draft: Draft, found: Section, path: str) -> None:
    gpus = found.take(GPU)
    if gpus is not None:
        draft.count = count_of(gpus.value.text) if isinstance(gpus.value, Scalar) else None
        if draft.count is None:
            _leave(draft, gpus, path, "this is not a number of GPUs of one machine")
    for entry in found.take_starting(_CHIPS):
        draft.refuse(entry, f"{path}.{entry.key}", _OTHER_CHIPS)
    disk = found.take("ephemeral-storage")
    if disk is not None:
        gib = gib_of(disk.value.text, decimal=True) if isinstance(disk.value, Scalar) else None
        draft.disk_gib = max(gib or 0, draft.disk_gib or 0) or None
        if gib is None:
            _leave(draft, disk, path, "this is not a size")
    found.close(dict.fromkeys(("cpu", "memory"), "machines are chosen by their GPUs, disk and price"))


def _leave(draft: Draft, entry: TreeEntry, path: str, why: str) -> None:
    draft.leave(entry, f"{path}.{entry.key}", why)
