"""Kubernetes' objects that train: a Job, and the PyTorchJob, TrainJob and JobSet that are made of Jobs or pods."""

from collections.abc import Callable

from prime_train.errors import UsageError
from prime_train.interop.imports.draft import ITSELF, ONE_MACHINE, Draft, Section, name_of
from prime_train.interop.imports.pods import (
    CLUSTER,
    REPLACED,
    read_command,
    read_deadline,
    read_pod,
    read_resources,
    read_variables,
)
from prime_train.spec.tree import Listing, Mapping, Scalar, TreeEntry

_TAGS = dict.fromkeys(("labels", "annotations"), "see tags")
_NOT_DESCRIBED = {"status": "it is the state of the object, not its description"}
_WHY_JOB = dict.fromkeys(
    (
        *("backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy"),
        *("podReplacementPolicy", "successPolicy"),
    ),
    REPLACED,
) | dict.fromkeys(
    ("ttlSecondsAfterFinished", "suspend", "manualSelector", "selector", "managedBy", "completionMode"),
    CLUSTER,
)
_WHY_POLICY = dict.fromkeys(("backoffLimit",), REPLACED) | dict.fromkeys(
    ("cleanPodPolicy", "ttlSecondsAfterFinished", "schedulingPolicy", "suspend", "managedBy"), CLUSTER
)
_WHY_SET = dict.fromkeys(
    (
        *(
            "network",
            "suspend",
            "ttlSecondsAfterFinished",
            "managedBy",
            "coordinator",
            "startupPolicy",
            "successPolicy",
        ),
        "gangPolicy",
    ),
    CLUSTER,
) | {"failurePolicy": REPLACED}
_SOME_MACHINES = (
    "each of these is a machine of its own, and a run has one: let one command do what all of them do"
)
_CLAIMS = "no disk of a cluster is there: fetch what the command reads under setup"
_PORT, _TRAINER_PORT = "23456", "29400"
"""Ports of the first process, as the operator of PyTorchJobs and the one of TrainJobs choose them."""


def read_kubernetes(draft: Draft, root: Mapping) -> None:
    """Fill the draft with the object. Raises UsageError if the file describes another kind of object."""
    top = Section(draft, root)
    kind = top.text("kind")
    if kind not in READERS:
        fix = f"give a manifest of kind {', '.join(READERS)}; of a CronJob or another object, its jobTemplate as a Job"
        raise UsageError(f"this is a Kubernetes object of kind {kind[:40]!r}, not a Job", fix=fix)
    top.text("apiVersion")
    metadata = top.section("metadata")
    draft.name = name_of(metadata.text("name") or metadata.text("generateName"))
    metadata.close(
        _TAGS
        | dict.fromkeys(
            (
                "namespace",
                "creationTimestamp",
                "uid",
                "resourceVersion",
                "generation",
                "ownerReferences",
                "finalizers",
            ),
            CLUSTER,
        )
    )
    READERS[kind](draft, top.section("spec"))
    top.close(_NOT_DESCRIBED)


def _read_job(draft: Draft, job: Section) -> None:
    for key in ("parallelism", "completions"):
        _only_one(draft, job.take(key), job.name(key))
    read_deadline(draft, job)
    _read_template(draft, job)
    if "JOB_COMPLETION_INDEX" in draft.command:
        _set_missing(draft, {"JOB_COMPLETION_INDEX": "0"})
    job.close(_WHY_JOB)


def _read_template(draft: Draft, above: Section) -> None:
    template = above.section("template")
    template.section("metadata").close(
        _TAGS | {"name": CLUSTER, "namespace": CLUSTER, "creationTimestamp": CLUSTER}
    )
    read_pod(draft, template.section("spec"))
    template.close({})


def _read_job_set(draft: Draft, jobs: Section) -> None:
    """Take over the one Job of a set."""
    entry = jobs.take("replicatedJobs")
    items = entry.value.items if entry is not None and isinstance(entry.value, Listing) else ()
    for item in items[1:]:
        draft.refuse(item, jobs.name("replicatedJobs"), _SOME_MACHINES)
    if items:
        first = Section(draft, items[0], jobs.name("replicatedJobs[0]"))
        _only_one(draft, first.take("replicas"), first.name("replicas"))
        template = first.section("template")
        template.section("metadata").close(_TAGS)
        _read_job(draft, template.section("spec"))
        template.close({})
        first.close(dict.fromkeys(("name", "groupName", "dependsOn"), "a run has one machine"))
    elif entry is not None:
        draft.refuse(entry, jobs.name("replicatedJobs"), "a list with one Job is expected here")
    jobs.close(_WHY_SET, {"volumeClaimPolicies": _CLAIMS})


def _read_pytorch_job(draft: Draft, job: Section) -> None:
    """Take over the one pod, with the variables that the operator sets for it."""
    replicas = job.section("pytorchReplicaSpecs")
    specs = [(name, entry) for name in ("Master", "Worker") if (entry := replicas.take(name)) is not None]
    used = False
    for name, entry in specs:
        one = Section(draft, entry.value, replicas.name(name))
        count = one.take("replicas")
        if _is_none(count):
            one.rest()
        elif used:
            draft.refuse(entry, replicas.name(name), ONE_MACHINE)
            one.rest()
        else:
            used = True
            _only_one(draft, count, one.name("replicas"))
            _read_template(draft, one)
            one.close({"restartPolicy": REPLACED})
    replicas.close({})
    per_node = job.text("nprocPerNode")
    policy = job.section("runPolicy")
    read_deadline(draft, policy)
    policy.close(_WHY_POLICY)
    elastic = job.section("elasticPolicy")
    for key in ("minReplicas", "maxReplicas"):
        _only_one(draft, elastic.take(key), elastic.name(key))
    per_node = elastic.text("nProcPerNode") or per_node
    elastic.close(
        dict.fromkeys(
            ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "standalone", "metrics"),
            "a run has one machine",
        )
        | {"maxRestarts": REPLACED}
    )
    job.close({})
    _set_missing(
        draft,
        {
            "MASTER_ADDR": ITSELF,
            "MASTER_PORT": _PORT,
            "WORLD_SIZE": per_node if per_node.isdecimal() else "1",
            "RANK": "0",
            "PET_NNODES": "1",
            "PET_NPROC_PER_NODE": per_node or "auto",
        },
    )


def _set_missing(draft: Draft, own: dict[str, str]) -> None:
    """Set the variables that the cluster sets for torch, as they are on one machine, where the file does not."""
    draft.environment = {**own, **draft.environment}


def _read_train_job(draft: Draft, job: Section) -> None:
    """Take over the trainer of a TrainJob. All that it does not say is in the cluster's runtime."""
    place = job.peek("trainer") or job.peek("runtimeRef")
    read_deadline(draft, job)
    reference = job.section("runtimeRef")
    runtime = reference.text("name")
    reference.close(dict.fromkeys(("apiGroup", "kind"), CLUSTER))
    entry = job.take("trainer")
    trainer = Section(draft, entry.value if entry is not None else None, job.name("trainer"))
    nodes = trainer.take("numNodes")
    _only_one(draft, nodes, trainer.name("numNodes"))
    missing = [key for key in ("image", "command") if trainer.peek(key) is None]
    if nodes is None and not runtime.startswith("torch-distributed"):
        missing.append("numNodes")
    if missing and place is not None:
        what = " and ".join(missing)
        why = f"the runtime {runtime[:60]!r} of the cluster says {what}, and the file does not: write it here"
        draft.refuse(place, job.name("trainer"), why)
    image = trainer.take("image")
    if image is not None and isinstance(image.value, Scalar):
        draft.set_image(image.value.text, image, trainer.name("image"))
    names = read_variables(draft, trainer, "env")
    read_command(draft, trainer, names)
    read_resources(draft, trainer.section("resourcesPerNode"))
    per_node = trainer.text("numProcPerNode")
    trainer.close({})
    job.close(
        dict.fromkeys(("suspend", "managedBy", "labels", "annotations"), CLUSTER),
        dict.fromkeys(
            ("podTemplateOverrides", "runtimePatches"),
            "it changes what the runtime of the cluster says: write the result",
        )
        | {"initializer": "it fetches the data set or the model: add what fetches them to setup"},
    )
    _set_missing(
        draft,
        {
            "PET_NNODES": "1",
            "PET_NPROC_PER_NODE": per_node or "auto",
            "PET_NODE_RANK": "0",
            "PET_MASTER_ADDR": ITSELF,
            "PET_MASTER_PORT": _TRAINER_PORT,
        },
    )


def _only_one(draft: Draft, entry: TreeEntry | None, what: str) -> None:
    if entry is not None and not (isinstance(entry.value, Scalar) and entry.value.value == 1):
        draft.refuse(entry, what, ONE_MACHINE)


def _is_none(entry: TreeEntry | None) -> bool:
    return entry is not None and isinstance(entry.value, Scalar) and entry.value.value == 0


READERS: dict[str, Callable[[Draft, Section], None]] = {
    "Job": _read_job,
    "PyTorchJob": _read_pytorch_job,
    "TrainJob": _read_train_job,
    "JobSet": _read_job_set,
}
"""How each kind of object is read."""
