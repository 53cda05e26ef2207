"""Where the points of the kill matrix are if bucket and provider are reached over a network: a request
identifies what a file identifies elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.points import Point


@dataclass(frozen=True)
class Requested:
    """A request at one of the gates, or bytes of SSH. `done`: it takes effect, but the sender gets no
    response. `after`: the first request that follows a request of a machine to this path.
    """

    gate: str
    method: str = ""
    path: str = ""
    done: bool = False
    after: str = ""


OF_MACHINES: Mapping[tuple[str, str], Requested] = {
    ("os.rename", r"/blobs/"): Requested("machines", "PUT", r"/blobs/"),
    ("os.rename", r"/manifests/"): Requested("machines", "PUT", r"/manifests/"),
    ("os.rename", r"latest\.json"): Requested("machines", "PUT", r"latest\.json"),
    # What is deleted is named in the body; manifests go before all else.
    ("os.remove", r"/manifests/"): Requested("machines", "POST", r"\?delete"),
}
OF_WATCHER: Mapping[tuple[str, str], Requested] = {
    ("os.rename", r"spec\.json"): Requested("watcher", "PUT", r"/spec\.json"),
    ("open", r"/manifests/"): Requested("watcher", "GET", r"/manifests/\d"),
    ("open", r"pod\.json"): Requested("provider", "POST", r"/pods/"),
    ("subprocess.Popen", r"pod_process"): Requested("provider", "POST", r"/pods/", done=True),
    ("open", r"ticket"): Requested("ssh"),
    ("shutil.rmtree", r"local-"): Requested("provider", "DELETE", r"/pods/"),
}
OF_WEBHOOK: Mapping[tuple[str, str], Requested] = {
    ("request", r"/commit"): Requested("webhook", "POST", "^/$", after=r"/commit$"),
    ("answer", r"/commit"): Requested("webhook", "POST", "^/$", done=True, after=r"/commit$"),
}


def place_of(point: Point) -> Requested | None:
    """Return the place of the point; None: it is identified by an event of the process, as on any machine."""
    of_role = {"plane": OF_WATCHER, "watcher": OF_WATCHER, "webhook": OF_WEBHOOK}
    return of_role.get(point.role, OF_MACHINES).get((point.event, point.pattern))
