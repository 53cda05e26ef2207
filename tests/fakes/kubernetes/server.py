"""The fake's server, its state, and its routes."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path

from prime_train.runs.wire import Ticket
from tests.fakes.clock import Clock, iso
from tests.fakes.http import Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.fakes.kubernetes.nodes import EXAMPLES, Json, why_unfit
from tests.fakes.openapi import DescribedFake, Description

TOKEN = "eyJhbGciOiJSUzI1NiJ9." + "e4" * 24 + ".c2lnbmF0dXJl"
DATA = Path(__file__).resolve().parents[2] / "data" / "kubernetes" / "openapi.json"
DESCRIPTION = Description(
    DATA,
    "Kubernetes",
    is_usual_error=lambda body: body.get("kind") == "Status" and body.get("status") == "Failure",
)
NAMESPACE = "/api/v1/namespaces/{namespace}"
JOBS = "/apis/batch/v1/namespaces/{namespace}/jobs"
SECRET_BYTES_MAX = 2**20
ENDED = ("Succeeded", "Failed")
Rule = tuple[str, str]


@dataclass(frozen=True)
class Started:
    """A container that has started: the uid of its pod, and the ticket that it found; None: it found none for
    its pod and ended.
    """

    pod_uid: str
    ticket: Ticket | None


@dataclass
class Plan:
    """How long things take: `boot_s` until a pod that is made from now on has a node, `end_s` until a pod
    that is deleted has ended. `makes_pods`: whether the Job controller may make pods, which a quota can
    forbid.
    """

    boot_s: float = 0.0
    end_s: float = 0.0
    makes_pods: bool = True


@dataclass(frozen=True)
class Machine:
    """A Job with its pod, as the provider's tests look at it."""

    fake: "FakeKubernetes"
    uid: str
    id: str
    """The id that the provider gives it."""
    name: str

    @property
    def costs(self) -> bool:
        return self in self.fake.alive

    def runs(self, now_s: float) -> bool:
        """Return whether its container works and can be reached."""
        return any(
            pod["status"]["phase"] == "Running"
            for pod in self.fake.pods.values()
            if _job_uid(pod) == self.uid
        )

    def hide(self) -> None:
        """Leave it out of lists, although it is there."""
        self.fake.hidden.add(self.uid)


@dataclass
class Limits:
    """Jobs at once that the namespace's quota allows, and the most objects in one page."""

    jobs: int = 1000
    page: int = 500
    refused: set[Rule] = field(default_factory=set)
    """Verbs and resources that the user has no right to."""


def failure(
    code: int,
    reason: str,
    message: str = "No.",
    *,
    kind: str = "",
    name: str = "",
    headers: dict[str, str] | None = None,
) -> Response:
    """Return an error in Kubernetes' form."""
    details = {key: value for key, value in (("kind", kind), ("name", name)) if value}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return json_response({**status, **({"details": details} if details else {})}, code, headers)


class FakeKubernetes(DescribedFake):
    """The fake. `running`: its clock advances like the real one, not only by `advance`."""

    description = DESCRIPTION

    def __init__(self, *, running: bool = False) -> None:
        super().__init__()
        self.clock = Clock(running=running)
        self.nodes: dict[str, Json] = {
            each["metadata"]["name"]: json.loads(json.dumps(each)) for each in EXAMPLES
        }
        self.namespaces = {"training": "5e9f0a9e-0000-4000-8000-00000000ba5e"}
        self.plan, self.limits = Plan(), Limits()
        self.jobs: dict[str, Json] = {}
        """The Jobs, by name."""
        self.pods: dict[str, Json] = {}
        """The pods, by uid."""
        self.secrets: dict[str, Json] = {}
        self.started: list[Started] = []
        self.claims: set[str] = set()
        """The PersistentVolumeClaims of the namespace."""
        self.hidden: set[str] = set()
        """Uids of Jobs that lists lack with their pods, although they are there."""
        self.on_start: Callable[[str], object] = lambda pod_id: None
        """Called with the id of each machine whose agent starts."""
        self.made = 0
        self._lists: dict[str, list[Json]] = {}

    # --------------------------------------------------------------------------------------------------------
    # what happens

    def now_s(self) -> float:
        return self.clock.now_s()

    def advance(self, seconds: float) -> None:
        with self.lock:
            self.clock.advance(seconds)
            self._settle()

    def pod_of(self, pod_id: str) -> Json:
        """Return the newest pod of the machine with this id at the provider."""
        uid = pod_id.partition(".")[2]
        with self.lock:
            self._settle()
            return [pod for pod in self.pods.values() if _job_uid(pod) == uid][-1]

    def job_of(self, pod_id: str) -> Json:
        with self.lock:
            return self.jobs[pod_id.partition(".")[0]]

    def end_container(self, pod_id: str, code: int) -> None:
        """Let the container end by itself."""
        with self.lock:
            self._end(self.pod_of(pod_id), code, "Completed" if code == 0 else "Error")
            self._settle()

    def disrupt(self, pod_id: str) -> None:
        """Begin the end of a pod, with the notice that its container gets: it ends after `plan.end_s`."""
        with self.lock:
            pod = self.pod_of(pod_id)
            pod["status"]["conditions"].append(
                _condition("DisruptionTarget", "True", "DeletionByTaintManager", self.now_s())
            )
            self._delete_pod(pod)
            self._settle()

    def lose_node(self, pod_id: str) -> None:
        """Cut the pod's node off: what runs there is not known any more."""
        with self.lock:
            pod = self.pod_of(pod_id)
            pod["status"]["phase"], pod["status"]["reason"] = "Unknown", "NodeLost"

    def forget(self, pod_id: str) -> None:
        """Remove all of a machine, as if somebody had ended it and deleted every trace."""
        name, _, uid = pod_id.partition(".")
        with self.lock:
            self.jobs.pop(name, None)
            self.pods = {key: pod for key, pod in self.pods.items() if _job_uid(pod) != uid}

    def wait_for(self, pod_id: str, reason: str) -> None:
        """Let the container wait for this reason, whatever there is."""
        with self.lock:
            self.pod_of(pod_id)["_waiting"] = reason
            self._settle()

    @property
    def alive(self) -> list[Machine]:
        """Return the machines whose containers may run, now or later."""
        with self.lock:
            self._settle()
            found = {}
            for job in self.jobs.values():
                if not any(
                    each["type"] in ("Complete", "Failed") for each in job["status"].get("conditions", ())
                ):
                    found[job["metadata"]["uid"]] = (job["metadata"]["name"], job["metadata"]["annotations"])
            for pod in self.pods.values():
                if pod["status"]["phase"] not in ENDED:
                    found[_job_uid(pod)] = (
                        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"],
                        pod["metadata"]["annotations"],
                    )
            return [
                Machine(self, uid, f"{name}.{uid}", notes["prime-train/name"])
                for uid, (name, notes) in found.items()
            ]

    def _settle(self) -> None:
        """Do what the controllers, the scheduler and the kubelets would have done by now."""
        now_s = self.now_s()
        for pod in list(self.pods.values()):
            ending_s = pod.get("_ending_s")
            if ending_s is not None and now_s >= ending_s and pod["status"]["phase"] != "Unknown":
                if pod["status"]["phase"] not in ENDED:
                    self._end(pod, 143, "Error")
                if "deletionTimestamp" in pod["metadata"]:
                    del self.pods[pod["metadata"]["uid"]]
                    self._count(pod)
        for job in list(self.jobs.values()):
            self._settle_job(job)
        for pod in list(self.pods.values()):
            if pod["status"]["phase"] == "Pending":
                self._settle_pod(pod, now_s)

    def _settle_job(self, job: Json) -> None:
        metadata, uid = job["metadata"], job["metadata"]["uid"]
        pods = [pod for pod in self.pods.values() if _job_uid(pod) == uid]
        if "deletionTimestamp" in metadata:
            for pod in pods:
                self._delete_pod(pod)
            if not [pod for pod in pods if pod["metadata"]["uid"] in self.pods]:
                del self.jobs[metadata["name"]]
                self.secrets = {
                    name: each
                    for name, each in self.secrets.items()
                    if each["metadata"]["ownerReferences"][0]["uid"] != uid
                }
            return
        for pod in pods:
            if pod["status"]["phase"] in ENDED:
                self._count(pod)
        ended = any(each["type"] in ("Complete", "Failed") for each in job["status"].get("conditions", ()))
        if (
            not pods
            and not ended
            and not job["spec"].get("suspend")
            and self.plan.makes_pods
            and not job["status"].get("failed")
        ):
            self._make_pod(job)

    def _count(self, pod: Json) -> None:
        """Note the end of a pod at its Job, which by its policy then ends, too."""
        job = next((each for each in self.jobs.values() if each["metadata"]["uid"] == _job_uid(pod)), None)
        if job is None or any(
            each["type"] in ("Complete", "Failed") for each in job["status"].get("conditions", ())
        ):
            return
        good = pod["status"]["phase"] == "Succeeded"
        reason = "CompletionsReached" if good else "BackoffLimitExceeded"
        if any(each["type"] == "DisruptionTarget" for each in pod["status"]["conditions"]):
            reason = "PodFailurePolicy"
        job["status"]["succeeded" if good else "failed"] = 1
        job["status"].setdefault("conditions", []).append(
            _condition("Complete" if good else "Failed", "True", reason, self.now_s())
        )

    def _make_pod(self, job: Json) -> None:
        template, metadata = job["spec"]["template"], job["metadata"]
        uid = self._uid()
        labels = {
            "batch.kubernetes.io/controller-uid": metadata["uid"],
            "batch.kubernetes.io/job-name": metadata["name"],
        }
        self.pods[uid] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{metadata['name'][:57]}-{uid[:5]}",
                "namespace": metadata["namespace"],
                "uid": uid,
                "creationTimestamp": iso(self.now_s()),
                "labels": {**template["metadata"].get("labels", {}), **labels},
                "annotations": template["metadata"].get("annotations", {}),
            },
            "spec": json.loads(json.dumps(template["spec"])),
            "status": {"phase": "Pending", "conditions": []},
            "_made_s": self.now_s(),
            "_boot_s": self.plan.boot_s,
        }

    def _settle_pod(self, pod: Json, now_s: float) -> None:
        if "nodeName" not in pod["spec"]:
            if now_s < pod["_made_s"] + pod["_boot_s"]:
                return
            self._schedule(pod, now_s)
        if "nodeName" not in pod["spec"]:
            return
        wanted = [
            each["secret"]["name"]
            for volume in pod["spec"]["volumes"]
            for each in volume.get("projected", {}).get("sources", ())
        ]
        waiting = pod.get("_waiting", "ContainerCreating")
        if waiting == "ContainerCreating" and all(name in self.secrets for name in wanted):
            self._start(pod, wanted, now_s)
        else:
            pod["status"]["containerStatuses"] = [_container({"waiting": {"reason": waiting}})]

    def _schedule(self, pod: Json, now_s: float) -> None:
        reasons = []
        named = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"]["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        if lacking := [name for name in named if name not in self.claims]:
            words = (
                f'0/{len(self.nodes)} nodes are available: persistentvolumeclaim "{lacking[0]}" '
                "not found. preemption: not eligible."
            )
            if not pod["status"]["conditions"]:
                pod["status"]["conditions"] = [
                    _condition("PodScheduled", "False", "Unschedulable", now_s, words)
                ]
            return
        for name, node in self.nodes.items():
            others = [
                each
                for each in self.pods.values()
                if each["spec"].get("nodeName") == name and each["status"]["phase"] not in ENDED
            ]
            why = why_unfit(pod, node, others)
            if not why:
                pod["spec"]["nodeName"] = name
                pod["status"]["conditions"] = [_condition("PodScheduled", "True", "", now_s)]
                return
            reasons.append(why)
        if not pod["status"]["conditions"]:
            pod["status"]["conditions"] = [
                _condition("PodScheduled", "False", "Unschedulable", now_s, "; ".join(reasons))
            ]

    def _start(self, pod: Json, secrets: list[str], now_s: float) -> None:
        files = {
            key: base64.b64decode(data)
            for name in secrets
            for key, data in self.secrets[name]["data"].items()
        }
        ticket = files.get(f"{pod['metadata']['uid']}.json")
        self.started.append(
            Started(
                pod["metadata"]["uid"], Ticket.model_validate_json(ticket) if ticket is not None else None
            )
        )
        if ticket is not None:
            self.on_start(f"{pod['metadata']['labels']['batch.kubernetes.io/job-name']}.{_job_uid(pod)}")
        pod["status"]["phase"] = "Running"
        pod["status"]["containerStatuses"] = [_container({"running": {"startedAt": iso(now_s)}})]
        if ticket is None:
            self._end(pod, 2, "Error")

    def _end(self, pod: Json, code: int, reason: str) -> None:
        pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
        ended = {
            "exitCode": code,
            "reason": reason,
            "finishedAt": iso(self.now_s()),
            "message": "the last line of its log",
        }
        pod["status"]["containerStatuses"] = [_container({"terminated": ended})]

    def _delete_pod(self, pod: Json) -> None:
        if "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"]["deletionTimestamp"] = iso(self.now_s())
            # One that has no node yet has nothing to end.
            pod["_ending_s"] = self.now_s() + (self.plan.end_s if "nodeName" in pod["spec"] else 0.0)
        if pod["status"]["phase"] in ENDED or (
            self.now_s() >= pod["_ending_s"] and pod["status"]["phase"] != "Unknown"
        ):
            if pod["status"]["phase"] not in ENDED:
                self._end(pod, 143, "Error")
            self.pods.pop(pod["metadata"]["uid"], None)
            self._count(pod)

    def _uid(self) -> str:
        self.made += 1
        return f"{self.made:08x}-0000-4000-8000-000000000000"

    # --------------------------------------------------------------------------------------------------------
    # handling requests

    def handled(self, route: Route, request: Request) -> object:
        if request.token != TOKEN:
            raise Refusal(failure(401, "Unauthorized", "Unauthorized"))
        resource = route.template.removesuffix("/{name}").rpartition("/")[2]
        verb = {"POST": "create", "DELETE": "delete"}.get(
            route.method, "get" if route.template.endswith("/{name}") else "list"
        )
        if route.template == "/api/v1/namespaces/{name}":
            resource, verb = "namespaces", "get"
        if (verb, resource) in self.limits.refused:
            raise Refusal(
                failure(
                    403,
                    "Forbidden",
                    f'{resource} is forbidden: User "pt" cannot {verb} resource "{resource}"',
                    kind=resource,
                )
            )
        self._settle()
        content = route.handler(self, request)
        self._settle()
        return content

    def finished(self, request: Request, response: Response) -> Response:
        return replace(response, headers={**response.headers, "date": formatdate(self.now_s(), usegmt=True)})

    def _listed(self, request: Request, kind: str, version: str, items: list[Json]) -> Json:
        """Return one page. The pages of one list show it as it was at the first of them."""
        token = request.query.get("continue", "")
        if token and token.partition(":")[0] not in self._lists:
            raise Refusal(failure(410, "Expired", "The provided continue parameter is too old"))
        key, _, start = token.partition(":") if token else (self._uid(), "", "0")
        if not token:
            self._lists[key] = [_shown(item) for item in items if _selected(item, request.query)]
        complete, first = self._lists[key], int(start)
        after = first + min(self.limits.page, int(request.query.get("limit", "500")))
        more = (
            {"continue": f"{key}:{after}", "remainingItemCount": len(complete) - after}
            if after < len(complete)
            else {}
        )
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"resourceVersion": "1", **more},
            "items": complete[first:after],
        }

    # --------------------------------------------------------------------------------------------------------
    # routes

    def list_jobs(self, request: Request) -> Json:
        found = [
            job
            for job in self.jobs.values()
            if self._is_here(job, request) and job["metadata"]["uid"] not in self.hidden
        ]
        return self._listed(request, "JobList", "batch/v1", found)

    def create_job(self, request: Request) -> Response:
        job, namespace = request.json, request.params["namespace"]
        name = job["metadata"]["name"]
        if namespace not in self.namespaces:
            raise Refusal(
                failure(
                    404, "NotFound", f'namespaces "{namespace}" not found', kind="namespaces", name=namespace
                )
            )
        if name in self.jobs:
            raise Refusal(
                failure(409, "AlreadyExists", f'jobs.batch "{name}" already exists', kind="jobs", name=name)
            )
        if len(self.jobs) >= self.limits.jobs:
            raise Refusal(
                failure(
                    403,
                    "Forbidden",
                    f'jobs.batch "{name}" is forbidden: exceeded quota: few',
                    kind="jobs",
                    name=name,
                )
            )
        if len(name) > 63:
            raise Refusal(
                failure(
                    422,
                    "Invalid",
                    f'Job.batch "{name}" is invalid: must be no more than 63 bytes',
                    kind="Job",
                    name=name,
                )
            )
        own = {"namespace": namespace, "uid": self._uid(), "creationTimestamp": iso(self.now_s())}
        job = {**job, "metadata": {**job["metadata"], **own}, "status": {}}
        if not job["spec"].get("suspend"):
            job["status"]["startTime"] = iso(self.now_s())
        self.jobs[name] = job
        return json_response(_shown(job), 201)

    def get_job(self, request: Request) -> Json:
        return _shown(self._job(request))

    def delete_job(self, request: Request) -> Json:
        job = self._job(request)
        _check_precondition(request, job, "jobs")
        job["metadata"].setdefault("deletionTimestamp", iso(self.now_s()))
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def list_pods(self, request: Request) -> Json:
        found = [pod for pod in self.pods.values() if self._is_here(pod, request)]
        is_of_one = "controller-uid" in request.query.get("labelSelector", "")
        return self._listed(
            request, "PodList", "v1", [pod for pod in found if is_of_one or _job_uid(pod) not in self.hidden]
        )

    def list_all_pods(self, request: Request) -> Json:
        return self._listed(request, "PodList", "v1", list(self.pods.values()))

    def delete_pod(self, request: Request) -> Json:
        name = request.params["name"]
        pod = next((pod for pod in self.pods.values() if pod["metadata"]["name"] == name), None)
        if pod is None:
            raise Refusal(failure(404, "NotFound", f'pods "{name}" not found', kind="pods", name=name))
        _check_precondition(request, pod, "pods")
        self._delete_pod(pod)
        return _shown(pod)

    def list_nodes(self, request: Request) -> Json:
        return self._listed(request, "NodeList", "v1", list(self.nodes.values()))

    def create_secret(self, request: Request) -> Response:
        secret = request.json
        name = secret["metadata"]["name"]
        if name in self.secrets:
            raise Refusal(
                failure(409, "AlreadyExists", f'secrets "{name}" already exists', kind="secrets", name=name)
            )
        if sum(len(base64.b64decode(data)) for data in secret["data"].values()) > SECRET_BYTES_MAX:
            raise Refusal(
                failure(
                    422,
                    "Invalid",
                    f'Secret "{name}" is invalid: data: Too long: may not be more than 1048576 bytes',
                )
            )
        self.secrets[name] = secret
        return json_response(secret, 201)

    def get_namespace(self, request: Request) -> Json:
        name = request.params["name"]
        if name not in self.namespaces:
            raise Refusal(
                failure(404, "NotFound", f'namespaces "{name}" not found', kind="namespaces", name=name)
            )
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "uid": self.namespaces[name]},
        }

    def review_access(self, request: Request) -> Response:
        wanted = request.json["spec"]["resourceAttributes"]
        allowed = (wanted["verb"], wanted["resource"]) not in self.limits.refused
        return json_response({**request.json, "status": {"allowed": allowed}}, 201)

    def _job(self, request: Request) -> Json:
        name = request.params["name"]
        if name not in self.jobs or not self._is_here(self.jobs[name], request):
            raise Refusal(failure(404, "NotFound", f'jobs.batch "{name}" not found', kind="jobs", name=name))
        return self.jobs[name]

    def _is_here(self, thing: Json, request: Request) -> bool:
        return bool(thing["metadata"]["namespace"] == request.params["namespace"])

    routes = (
        Route("GET", JOBS, list_jobs),
        Route("POST", JOBS, create_job),
        Route("GET", JOBS + "/{name}", get_job),
        Route("DELETE", JOBS + "/{name}", delete_job),
        Route("GET", NAMESPACE + "/pods", list_pods),
        Route("DELETE", NAMESPACE + "/pods/{name}", delete_pod),
        Route("POST", NAMESPACE + "/secrets", create_secret),
        Route("GET", "/api/v1/pods", list_all_pods),
        Route("GET", "/api/v1/nodes", list_nodes),
        Route("GET", "/api/v1/namespaces/{name}", get_namespace),
        Route("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review_access),
    )


def _shown(thing: Json) -> Json:
    return {key: value for key, value in json.loads(json.dumps(thing)).items() if not key.startswith("_")}


def _check_precondition(request: Request, thing: Json, kind: str) -> None:
    """Refuse to delete a thing that has the name by now, but not the uid that was meant."""
    uid, name = thing["metadata"]["uid"], thing["metadata"]["name"]
    if (request.json or {}).get("preconditions", {}).get("uid", uid) != uid:
        raise Refusal(
            failure(409, "Conflict", "the UID in the precondition does not match", kind=kind, name=name)
        )


def _job_uid(pod: Json) -> str:
    return str(pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"])


def _condition(kind: str, status: str, reason: str, now_s: float, message: str = "") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": iso(now_s),
    }


def _container(state: Json) -> Json:
    return {
        "name": "agent",
        "image": "i",
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _selected(thing: Json, query: dict[str, str]) -> bool:
    labels, phase = thing["metadata"].get("labels", {}), thing.get("status", {}).get("phase")
    wanted = dict(each.split("=") for each in query.get("labelSelector", "").split(",") if each)
    refused = [each.partition("!=")[2] for each in query.get("fieldSelector", "").split(",") if each]
    return wanted.items() <= labels.items() and phase not in refused
