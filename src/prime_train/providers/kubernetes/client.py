"""Client of a cluster's API: one method per call, which parses the response and raises the errors of
`errors`.

Lists come in pages. A list is complete or it is an error, because one with a gap would look complete.
"""

import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar

from prime_train.api_exchange import Witness
from prime_train.errors import TemporaryError
from prime_train.http import PAUSE_S, READ_S, Http, HttpResponse
from prime_train.providers.kubernetes import errors
from prime_train.providers.kubernetes.exec_plugin import Login
from prime_train.providers.kubernetes.kubeconfig import Cluster, tls_of
from prime_train.providers.kubernetes.models import KubernetesJob, KubernetesPod, Namespace, Node
from prime_train.providers.kubernetes.settings import TITLE
from prime_train.providers.rental.parsing import ResponsePart, parsed, read_answer
from prime_train.providers.rental.rate_limit import RateLimitPause

PAGE = 100
"""Objects in one page: those of large clusters have tens of KiB each."""
PAGES_MAX = 1_000
CREATE_READ_S = 60.0
"""Read timeout in seconds of a create call, which passes the cluster's webhooks. A Job whose response is lost
is found by its name.
"""
RUNNING_PODS = "status.phase!=Succeeded,status.phase!=Failed"

P = TypeVar("P", bound=ResponsePart)


class KubernetesClient:
    """Client for one cluster and one namespace. Raises TemporaryError and PermanentError as every adapter
    does. `read_s`: read timeout in seconds; `pause_s`: first pause before a retry; `clock` returns monotonic
    seconds, `wall` the time of day; `witness` is told every exchange. Thread-safe.

    While the cluster has asked for a pause, no request is sent, except those that give a machine back.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        read_s: float = READ_S,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        witness: Witness | None = None,
    ) -> None:
        self._witness = witness
        self._cluster, self._read_s, self._pause_s, self._wall = cluster, read_s, pause_s, wall
        self._quiet = RateLimitPause(TITLE, clock)
        self._lock = threading.Lock()
        self._http: tuple[Login, Http] | None = None
        self._ahead_s = 0.0

    @property
    def namespace(self) -> str:
        return self._cluster.namespace

    @property
    def url(self) -> str:
        return self._cluster.url

    def now_s(self) -> float:
        """Return the time of day at the cluster, as its last response told it, because its objects have its
        times.
        """
        return self._wall() + self._ahead_s

    # --------------------------------------------------------------------------------------------------------
    # Jobs

    def create_job(self, manifest: Mapping[str, object], name: str) -> KubernetesJob | None:
        """Create the Job, without retries. Return None if there is one with its name. LimitReached and
        PermanentError guarantee that none was made.
        """
        answer = self._ask("POST", self._jobs, body=manifest, read_s=max(self._read_s, CREATE_READ_S))
        if answer.status == 409 and errors.code_in(answer) == "AlreadyExists":
            return None
        if not answer.is_ok:
            raise errors.create_refusal(answer)
        return _named(read_answer(KubernetesJob, answer), name, answer)

    def job(self, name: str) -> KubernetesJob | None:
        """Return the Job, or None if the cluster has none with this name."""
        answer = self._ask("GET", f"{self._jobs}/{name}")
        if errors.is_unknown(answer, name):
            return None
        if not answer.is_ok:
            raise errors.refusal(answer)
        return _named(read_answer(KubernetesJob, answer), name, answer)

    def jobs(self, selector: str) -> list[KubernetesJob]:
        return self._list(KubernetesJob, self._jobs, {"labelSelector": selector})

    def delete_job(self, name: str, uid: str) -> bool:
        """Delete the Job and then, by the cluster itself, its pods and Secrets. Return False if there is none
        with this name and uid.
        """
        body = {
            "apiVersion": "batch/v1",
            "kind": "DeleteOptions",
            # Foreground: the Job remains until its pod has ended, so that a machine never runs that no Job
            # shows.
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": uid},
        }
        answer = self._ask("DELETE", f"{self._jobs}/{name}", body=body)
        # The precondition fails if the name is another Job's by now.
        if errors.is_unknown(answer, name) or (answer.status == 409 and errors.code_in(answer) == "Conflict"):
            return False
        if not answer.is_ok:
            raise errors.refusal(answer)
        return True

    # --------------------------------------------------------------------------------------------------------
    # pods

    def pods(self, selector: str) -> list[KubernetesPod]:
        return self._list(KubernetesPod, self._pods, {"labelSelector": selector})

    def delete_pod(self, name: str, uid: str) -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        answer = self._ask("DELETE", f"{self._pods}/{name}", body=body)
        if not answer.is_ok and not errors.is_unknown(answer, name) and errors.code_in(answer) != "Conflict":
            raise errors.refusal(answer)

    def pods_everywhere(self) -> list[KubernetesPod]:
        """Return the pods of all namespaces that have not ended."""
        return self._list(KubernetesPod, "/api/v1/pods", {"fieldSelector": RUNNING_PODS})

    def nodes(self) -> list[Node]:
        return self._list(Node, "/api/v1/nodes", {})

    # --------------------------------------------------------------------------------------------------------
    # others

    def create_secret(self, manifest: Mapping[str, object]) -> bool:
        """Create the Secret. Return False if there is one with its name."""
        answer = self._ask("POST", f"/api/v1/namespaces/{self.namespace}/secrets", body=manifest)
        if answer.status == 409 and errors.code_in(answer) == "AlreadyExists":
            return False
        if not answer.is_ok:
            raise errors.refusal(answer)
        return True

    def namespace_uid(self) -> str:
        """Return the uid of the namespace, which no other namespace of any cluster has; empty if there is no
        such namespace.
        """
        answer = self._ask("GET", f"/api/v1/namespaces/{self.namespace}")
        if errors.is_unknown(answer, self.namespace):
            return ""
        if not answer.is_ok:
            raise errors.refusal(answer)
        return read_answer(Namespace, answer).metadata.uid

    def may(self, verb: str, group: str, resource: str, *, everywhere: bool = False, name: str = "") -> bool:
        """Return whether the caller has a right, in the namespace or in all of the cluster; with `name`, on
        the object of that name.
        """
        attributes = {"verb": verb, "group": group, "resource": resource}
        attributes |= {} if everywhere else {"namespace": self.namespace}
        attributes |= {"name": name} if name else {}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)
        if not answer.is_ok:
            raise errors.refusal(answer)
        match answer.content():
            case {"status": {"allowed": bool(allowed)}}:
                return allowed
            case _:
                raise TemporaryError(
                    f"{answer.what}: the answer cannot be parsed: it does not say whether the right is there"
                )

    # --------------------------------------------------------------------------------------------------------
    # inside

    @property
    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def _list(self, kind: type[P], path: str, parameters: Mapping[str, str]) -> list[P]:
        found: list[P] = []
        seen: set[str] = set()
        token = ""
        for _ in range(PAGES_MAX):
            answer = self._ask(
                "GET",
                path,
                parameters={**parameters, "limit": str(PAGE), **({"continue": token} if token else {})},
            )
            if not answer.is_ok:
                raise errors.refusal(answer)
            match answer.content():
                case {"kind": str(name), "metadata": dict(metadata), "items": list(items)} if name.endswith(
                    "List"
                ):
                    found += [parsed(kind, item, answer.what) for item in items]
                case _:
                    raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it is no list")
            given = metadata.get("continue") or ""
            if not given:
                return found
            if not isinstance(given, str) or given in seen:
                raise TemporaryError(f"{answer.what}: the pages of the list repeat themselves")
            seen.add(given)
            token = given
        raise TemporaryError(f"GET {path}: the list has more than {PAGES_MAX} pages")

    def _ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        parameters: Mapping[str, str] | None = None,
        read_s: float | None = None,
    ) -> HttpResponse:
        self._quiet.check(method, path)
        for anew in (False, True):
            http = self._connection(anew)
            answer = http.ask(
                method,
                path,
                body=body,
                parameters=parameters,
                read_s=self._read_s if read_s is None else read_s,
            )
            if answer.status != 401:
                break  # a login may have ended before its time; it is renewed once
        self._quiet.heed(answer)
        self._heed_time(answer)
        return answer

    def _connection(self, anew: bool) -> Http:
        """Return the client with the current login. A new login gets a new client, whose errors strike out
        its token.
        """
        login = self._cluster.login(anew)
        with self._lock:
            if self._http is None or self._http[0] != login:
                tls = tls_of(self._cluster.authority, login)
                self._http = (
                    login,
                    Http(
                        self._cluster.url,
                        key=login.token,
                        pause_s=self._pause_s,
                        tls=tls,
                        witness=self._witness,
                    ),
                )
            return self._http[1]

    def _heed_time(self, answer: HttpResponse) -> None:
        try:
            self._ahead_s = parsedate_to_datetime(answer.headers["date"]).timestamp() - self._wall()
        except (KeyError, ValueError, OverflowError):
            return  # a proxy answered


def _named(job: KubernetesJob, name: str, answer: HttpResponse) -> KubernetesJob:
    if job.metadata.name != name:
        raise TemporaryError(f"{answer.what}: the answer is about another Job")
    return job
