"""A pod: one container, its command, its variables, its GPUs and what is mounted."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from prime_train.interop.imports.draft import Draft, Section, in_bash
from prime_train.interop.imports.gpus import count_of, is_other_chip, kind_of
from prime_train.interop.imports.needs import OTHER_CHIPS, list_needs, numbered
from prime_train.interop.imports.quantities import gib_of, hours_of
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, TreeEntry, scalars

GPU = "nvidia.com/gpu"
CLUSTER = "it is about a cluster; prime-train rents a machine for each attempt"
REPLACED = "lost machines are replaced in any case, from the newest complete checkpoint"
_KINDS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "gpu.nvidia.com/model",
    "accelerator",
    "nvidia.com/gpu.family",
    "karpenter.k8s.aws/instance-gpu-name",
    "gpu.nvidia.com/class",
    "k8s.amazonaws.com/accelerator",
)
"""Labels of nodes that tell the kind of GPU."""
_CHIP_LABELS = ("cloud.google.com/gke-tpu", "amd.com/gpu", "aws.amazon.com/neuron")
"""Starts of labels of nodes with other accelerators."""
_CHIPS = (
    "google.com/tpu",
    "cloud-tpus.google.com/",
    "amd.com/gpu",
    "habana.ai/",
    "gpu.intel.com/",
    "aws.amazon.com/neuron",
    "huawei.com/",
    "xilinx.com/",
    "cambricon.com/",
    "furiosa.ai/",
)
"""Starts of the names by which pods ask for other accelerators."""
_HARMLESS = (
    "hugepages-",
    "rdma/",
    "vpc.amazonaws.com/efa",
    "networking.gke.io",
    "nvidia.com/rdma",
    "nvidia.com/hostdev",
)
"""Starts of the names of devices for the network between machines, and of kinds of memory."""
_SPOT = {
    "cloud.google.com/gke-spot": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
_ORDINAL = ("job-completion-index", "job-index", "job-global-index", "restart-attempt", "replica-index")
"""Ends of the names of labels and annotations that are 0 on the first and only machine."""
_WHY_POD = dict.fromkeys(
    (
        *(
            "tolerations",
            "serviceAccountName",
            "serviceAccount",
            "priorityClassName",
            "priority",
            "schedulerName",
        ),
        *(
            "runtimeClassName",
            "hostNetwork",
            "hostIPC",
            "hostPID",
            "dnsPolicy",
            "securityContext",
            "subdomain",
        ),
        *(
            "topologySpreadConstraints",
            "automountServiceAccountToken",
            "enableServiceLinks",
            "preemptionPolicy",
        ),
        *("schedulingGates", "shareProcessNamespace", "hostname", "setHostnameAsFQDN", "os", "nodeName"),
    ),
    CLUSTER,
) | {
    "restartPolicy": REPLACED,
    "terminationGracePeriodSeconds": "see trainer.stop_s",
}
_REFUSED_POD = {
    "initContainers": "they prepare what the command needs: add what they do to setup",
    "imagePullSecrets": "the image is private: see hardware.image on how a provider gets it",
    "resourceClaims": "machines are chosen by their GPUs: write hardware.gpus and hardware.count",
    "hostAliases": "names of other machines are not known: write their addresses",
    "dnsConfig": "names of the cluster are not known: write addresses",
}
_WHY_CONTAINER = {
    **dict.fromkeys(
        (
            *("securityContext", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"),
            *("tty", "stdin", "stdinOnce", "resizePolicy", "restartPolicy"),
        ),
        CLUSTER,
    ),
    **dict.fromkeys(
        ("livenessProbe", "readinessProbe", "startupProbe"), "the agent watches the trainer; see health"
    ),
    "ports": "no port of a machine is open to others",
    "name": "a run has one container",
}
_REFUSED_CONTAINER = {
    "envFrom": "its variables are not listed in this file: add them one by one to environment or secrets",
    "volumeDevices": "no disk of a cluster is there: fetch what the command reads under setup",
    "lifecycle": "it runs commands of its own: add them to setup or trainer.command",
}
_NAMED = re.compile(r"\$?\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
"""A variable as Kubernetes replaces it, or one that is escaped."""
_FILES = (
    "nothing of a cluster is mounted on a rented machine: fetch what the command reads under setup, or name the claim "
    "under hardware.volumes; checkpoints and outputs are kept in the bucket"
)


def read_pod(draft: Draft, pod: Section) -> None:
    """Fill the draft with the pod."""
    for entry in pod.section("nodeSelector").rest():
        value = entry.value.text if isinstance(entry.value, Scalar) else ""
        _label(draft, entry, pod.name(f"nodeSelector.{entry.key}"), entry.key, [value])
    affinity = pod.take("affinity")
    if affinity is not None:
        _affinity(draft, affinity.value, pod.name("affinity"))
        draft.leave(affinity, pod.name("affinity"), CLUSTER)
    read_deadline(draft, pod)
    mounts = _volumes(draft, pod.take("volumes"), pod.name("volumes"))
    containers = pod.take("containers")
    items = containers.value.items if containers is not None and isinstance(containers.value, Listing) else ()
    for item in items[1:]:
        why = "a run has one container, and the first one is used: let the command do what this one does"
        draft.refuse(item, pod.name("containers"), why)
    if items:
        read_container(draft, Section(draft, items[0], pod.name("containers[0]")), mounts)
    elif containers is not None:
        draft.refuse(containers, pod.name("containers"), "a list with a container is expected here")
    pod.close(_WHY_POD, _REFUSED_POD)


def read_deadline(draft: Draft, found: Section) -> None:
    """Take over a time limit, the shortest of several."""
    entry = found.take("activeDeadlineSeconds")
    if entry is None:
        return
    hours = hours_of(entry.value.text) if isinstance(entry.value, Scalar) else None
    if hours is None:
        why = "this is not a number of seconds: write budget.hours"
        draft.refuse(entry, found.name("activeDeadlineSeconds"), why)
    else:
        draft.hours = min(hours, draft.hours or hours)


def _label(draft: Draft, entry: TreeEntry | Node, what: str, key: str, values: list[str]) -> None:
    """Take over a label that nodes have to have: one of the values."""
    kinds = [kind for kind in map(kind_of, values) if kind]
    if key.startswith(_CHIP_LABELS) or (key in _KINDS and any(map(is_other_chip, values))):
        draft.refuse(entry, what, OTHER_CHIPS)
    elif key in _KINDS and values and len(kinds) == len(values):
        draft.gpus += [kind for kind in dict.fromkeys(kinds) if kind not in draft.gpus]
    elif key in _KINDS:
        why = "it is no kind of GPU that prime-train knows: write hardware.gpus"
        draft.refuse(entry, what, why)
    elif _SPOT.get(key) in values:
        draft.spot = "only" if len(values) == 1 else "prefer"
    else:
        draft.leave(entry, what, CLUSTER)


def _affinity(draft: Draft, node: Node, what: str) -> None:
    """Take over the labels of nodes that expressions at any depth ask for."""
    if isinstance(node, Listing):
        for item in node.items:
            _affinity(draft, item, what)
    elif isinstance(node, Mapping):
        key, values = node.entry("key"), node.entry("values")
        if key is not None and isinstance(key.value, Scalar) and key.value.text in (*_KINDS, *_SPOT):
            operator = node.entry("operator")
            found = [one.text for one in scalars(values.value)] if values is not None else []
            if operator is not None and isinstance(operator.value, Scalar) and operator.value.text == "In":
                _label(draft, node, what, key.value.text, found)
            else:
                draft.refuse(
                    node, what, f"it chooses nodes by {key.value.text}: write hardware.gpus or hardware.spot"
                )
        for entry in node.entries:
            # What is only preferred restricts nothing.
            if not entry.key.startswith("preferred"):
                _affinity(draft, entry.value, what)


def _volumes(draft: Draft, entry: TreeEntry | None, what: str) -> dict[str, bool]:
    """Return the names of the pod's volumes, and whether each is empty at first."""
    found: dict[str, bool] = {}
    for item in entry.value.items if entry is not None and isinstance(entry.value, Listing) else ():
        name = item.entry("name") if isinstance(item, Mapping) else None
        if name is not None and isinstance(name.value, Scalar) and isinstance(item, Mapping):
            found[name.value.text] = item.entry("emptyDir") is not None
    if entry is not None and any(found.values()):
        draft.leave(entry, what, "folders that are empty at first are on the machine's disk")
    return found


def read_container(draft: Draft, found: Section, volumes: dict[str, bool]) -> None:
    """Fill the draft with the container. `volumes`: the names of the pod's, and whether each is empty."""
    image = found.take("image")
    if image is not None and isinstance(image.value, Scalar):
        draft.set_image(image.value.text, image, found.name("image"))
    names = read_variables(draft, found, "env")
    _mounts(draft, found, volumes)
    folder = found.text("workingDir")
    read_command(draft, found, names)
    if folder and draft.command:
        draft.command = f"cd {shlex.quote(folder)}\n{draft.command}"
        draft.lines.clear()
    if draft.folders and draft.command:
        draft.command = f"mkdir -p {shlex.join(draft.folders)}\n{draft.command}"
    read_resources(draft, found.section("resources"))
    found.close(_WHY_CONTAINER, _REFUSED_CONTAINER)


def _mounts(draft: Draft, found: Section, volumes: dict[str, bool]) -> None:
    """List what is mounted into the container. Folders that are empty at first are made."""
    entry = found.take("volumeMounts")
    for item in entry.value.items if entry is not None and isinstance(entry.value, Listing) else ():
        mount = Section(draft, item, found.name("volumeMounts"))
        name, path = mount.text("name"), mount.text("mountPath")
        if not volumes.get(name):
            draft.refuse(item, found.name(f"volumeMounts.{name[:60]}"), f"{path[:60]}: {_FILES}")
        elif path and not path.startswith("/dev/"):
            draft.folders.append(path)
        mount.rest()


def read_variables(draft: Draft, found: Section, key: str) -> set[str]:
    """Take over variables, and return their names."""
    variables = found.take(key)
    listed = variables.value if variables is not None else None
    if variables is not None and not isinstance(listed, Listing):
        draft.refuse(variables, found.name(key), "a list of variables is expected here")
    items = listed.items if isinstance(listed, Listing) else ()
    return {_variable(draft, Section(draft, item, found.name(key)), item) for item in items}


def _variable(draft: Draft, found: Section, item: Node) -> str:
    """Take over a variable, and return its name."""
    name, value, source = found.text("name"), found.take("value"), found.section("valueFrom")
    of_secret, of_field = source.take("secretKeyRef"), source.section("fieldRef").text("fieldPath")
    if of_secret is not None:
        draft.secret(name, item, found.name(name))
    elif value is not None:
        _set(draft, name, value.value, found.name(name))
    elif of_field.rstrip("']").endswith(_ORDINAL):
        draft.variable(name, Scalar(item.place, "0", "0"), found.name(name))
    elif not of_field and not source.rest():
        draft.variable(name, Scalar(item.place, "", ""), found.name(name))
    else:
        why = f"its value comes from the cluster: add {name[:60]} to environment"
        draft.refuse(item, found.name(name), why)
    source.rest()
    found.close({})
    return name


def _set(draft: Draft, name: str, value: Node, what: str) -> None:
    """Take over the value of a variable, with those of others in it, $(NAME), as Kubernetes replaces them."""
    secrets = [one for one in draft.secrets if isinstance(value, Scalar) and f"$({one})" in value.text]
    if isinstance(value, Scalar) and "$(" in value.text and not secrets:
        text = _NAMED.sub(
            lambda match: (
                match[0][1:] if match[0].startswith("$$") else draft.environment.get(match[1], match[0])
            ),
            value.text,
        )
        value = Scalar(value.place, text, text)
    if secrets:
        draft.refuse(
            value, what, f"it has the secret {secrets[0]} in it: set it in the command, from that variable"
        )
    else:
        draft.variable(name, value, what)


def read_command(draft: Draft, found: Section, names: set[str]) -> None:
    """Take over command and arguments. A shell's script is taken as it is."""
    words: list[tuple[Node, str]] = []
    for key in ("command", "args"):
        entry = found.take(key)
        if entry is None:
            continue
        items = entry.value.items if isinstance(entry.value, Listing) else (entry.value,)
        if key == "args" and not words:
            draft.refuse(
                entry,
                found.name("args"),
                "they are arguments of the image's own program, which the manifest does not name: write it "
                "before",
            )
        for item in items:
            if isinstance(item, Scalar):
                words.append((item, draft.without_secrets(item, item.text, found.name(key))))
            else:
                draft.refuse(item, found.name(key), "a text is expected here")
    if len(words) == 4 and words[1][1] == "-c" and words[2][1] == "--":
        del words[2]
    texts = [text for _, text in words]
    shell = texts[0].rpartition("/")[2] if len(texts) == 3 and texts[1] == "-c" else ""
    for node, text in words:
        list_needs(draft, numbered(node, text), found.name("command"))
    if shell or not words:
        draft.lines += [(found.name("command"), numbered(words[2][0], words[2][1]))] if shell else []
    else:
        line = " ".join(shlex.quote(text) for _, text in words)
        draft.lines.append((found.name("command"), {words[0][0].place.line: line}))
    _one_machine(draft, words, found.name("command"))
    if shell == "sh":
        draft.command = _expanded(texts[2], names).strip()
    elif shell == "bash":
        draft.command = in_bash(_expanded(texts[2], names).strip())
    else:
        draft.command = " ".join(_word(text, names) for text in texts)


def _one_machine(draft: Draft, words: list[tuple[Node, str]], what: str) -> None:
    """Refuse a number of nodes that is an argument of its own."""
    for (_, name), (node, value) in pairwise(words):
        if re.fullmatch(r"--?(nnodes|num[-_](nodes|machines))", name):
            list_needs(draft, {node.place.line: f"{name} {value}"}, what)


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

    return _NAMED.sub(shell, text)


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
    for match in _NAMED.finditer(text):
        yield text[at : match.start()], False
        if match[0].startswith("$$"):
            yield match[0][1:], False
        elif match[1] in names:
            yield f"${{{match[1]}}}", True
        else:
            yield match[0], False
        at = match.end()
    yield text[at:], False


def read_resources(draft: Draft, found: Section) -> None:
    """Take over what the container asks for."""
    for which in ("requests", "limits"):
        _resources(draft, found.section(which), found.name(which))
    claims = "machines are chosen by their GPUs: write hardware.gpus and hardware.count"
    found.close({}, {"claims": claims})


def _resources(draft: Draft, found: Section, path: str) -> None:
    gpus = found.take(GPU)
    if gpus is not None:
        text = gpus.value.text if isinstance(gpus.value, Scalar) else ""
        count = count_of(text)
        if count is not None:
            draft.count = count
        elif text.strip("\"'") != "0":
            draft.refuse(
                gpus, f"{path}.{GPU}", "this is not a number of GPUs of one machine: write hardware.count"
            )
    for entry in found.take_starting(_CHIPS):
        draft.refuse(entry, f"{path}.{entry.key}", OTHER_CHIPS)
    for entry in found.take_starting(_HARMLESS):
        draft.leave(entry, f"{path}.{entry.key}", CLUSTER)
    for entry in found.take_starting(("nvidia.com/",)):
        why = "it is a part of a GPU, or another kind of it: write hardware.gpus and hardware.count"
        draft.refuse(entry, f"{path}.{entry.key}", why)
    disk = found.take("ephemeral-storage")
    if disk is not None:
        gib = gib_of(disk.value.text, decimal=True) if isinstance(disk.value, Scalar) else None
        draft.disk_gib = max(gib or 0, draft.disk_gib or 0) or None
        if gib is None:
            draft.refuse(disk, f"{path}.ephemeral-storage", "this is not a size: write hardware.disk_gib")
    found.close(dict.fromkeys(("cpu", "memory"), "machines are chosen by their GPUs, disk and price"))
