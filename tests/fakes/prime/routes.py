"""Prime's routes as a table: what may be asked, with which permission, and who answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.prime import about_accounts, about_offers, about_pods
from tests.fakes.prime.queries import Asked, Json
from tests.fakes.prime.world import World


@dataclass(frozen=True)
class Route:
    """`path` follows /api/v1, a `*` in it is an id; `permission` and `deed` are what the key must be good for."""

    method: str
    path: str
    permission: str
    deed: str
    answer: Callable[[World, Asked], Json]

    def match(self, path: str) -> re.Match[str] | None:
        return re.fullmatch(re.escape(self.path).replace(r"\*", "([^/]+)"), path)


# In order: of two that match, the first is meant.
ROUTES = (
    Route("GET", "/availability/gpus", "availability", "read", about_offers.gpus),
    Route("GET", "/availability/multi-node", "availability", "read", about_offers.multi_node),
    Route("GET", "/availability/disks", "availability", "read", about_offers.disk_offers),
    Route("GET", "/availability/gpu-summary", "availability", "read", about_offers.gpu_summary),
    Route("GET", "/availability/multi-node-summary", "availability", "read", about_offers.multi_node_summary),
    Route("GET", "/pods/", "instances", "read", about_pods.list_pods),
    Route("POST", "/pods/", "instances", "write", about_pods.create_pod),
    Route("GET", "/pods/status", "instances", "read", about_pods.pod_statuses),
    Route("GET", "/pods/history", "instances", "read", about_pods.pod_history),
    Route("GET", "/pods/*/log", "instances", "read", about_pods.pod_log),
    Route("GET", "/pods/*", "instances", "read", about_pods.get_pod),
    Route("DELETE", "/pods/*", "instances", "write", about_pods.delete_pod),
    Route("GET", "/ssh_keys/", "ssh_keys", "read", about_accounts.list_keys),
    Route("POST", "/ssh_keys/", "ssh_keys", "write", about_accounts.create_key),
    Route("PATCH", "/ssh_keys/*", "ssh_keys", "write", about_accounts.change_key),
    Route("DELETE", "/ssh_keys/*", "ssh_keys", "write", about_accounts.delete_key),
    Route("GET", "/disks/", "disks", "read", about_accounts.list_disks),
    Route("POST", "/disks/", "disks", "write", about_accounts.create_disk),
    Route("GET", "/disks/*", "disks", "read", about_accounts.get_disk),
    Route("PATCH", "/disks/*", "disks", "write", about_accounts.rename_disk),
    Route("DELETE", "/disks/*", "disks", "write", about_accounts.delete_disk),
    Route("GET", "/billing/wallet", "billing", "read", about_accounts.wallet),
    Route("GET", "/user/whoami", "user", "read", about_accounts.whoami),
    Route("GET", "/teams/*/members", "user", "read", about_accounts.team_members),
    Route("GET", "/user/teams", "user", "read", about_accounts.teams),
)


def canonical(path: str) -> str | None:
    """The path as it should have been asked, with or without the slash at its end; None where there is no such path."""
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    return next((each for each in (path, other) if any(route.match(each) for route in ROUTES)), None)
