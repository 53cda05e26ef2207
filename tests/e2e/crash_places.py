"""Where points of the kill matrix are when bucket and provider are asked over a wire: a request tells what a file tells elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.points import Point


@dataclass(frozen=True)
class Asked:
    """A request at one of the gates, or bytes of SSH. `done`: it takes effect, and whoever asked never hears of it. `after`: the first one
    that follows a request of a machine's to this path."""

    gate: str
    method: str = ""
    path: str = ""
    done: bool = False
    after: str = ""


OF_MACHINES: Mapping[tuple[str, str], Asked] = {
    ("os.rename", r"/blobs/"): Asked("machines", "PUT", r"/blobs/"),
    ("os.rename", r"/manifests/"): Asked("machines", "PUT", r"/manifests/"),
    ("os.rename", r"latest\.json"): Asked("machines", "PUT", r"latest\.json"),
    # What is deleted is named in the body; manifests go before all else.
    ("os.remove", r"/manifests/"): Asked("machines", "POST", r"\?delete"),
}
OF_WATCHER: Mapping[tuple[str, str], Asked] = {
    ("os.rename", r"spec\.json"): Asked("watcher", "PUT", r"/spec\.json"),
    ("open", r"/manifests/"): Asked("watcher", "GET", r"/manifests/\d"),
    ("open", r"pod\.json"): Asked("provider", "POST", r"/pods/"),
    ("subprocess.Popen", r"local_pod"): Asked("provider", "POST", r"/pods/", done=True),
    ("open", r"ticket"): Asked("ssh"),
    ("shutil.rmtree", r"local-"): Asked("provider", "DELETE", r"/pods/"),
}
OF_WEBHOOK: Mapping[tuple[str, str], Asked] = {
    ("request", r"/commit"): Asked("webhook", "POST", "^/$", after=r"/commit$"),
    ("answer", r"/commit"): Asked("webhook", "POST", "^/$", done=True, after=r"/commit$"),
}


def place_of(point: Point) -> Asked | None:
    """None: it is told by an event of the process, as on any machine."""
    of_role = {"plane": OF_WATCHER, "watcher": OF_WATCHER, "webhook": OF_WEBHOOK}
    return of_role.get(point.role, OF_MACHINES).get((point.event, point.pattern))
