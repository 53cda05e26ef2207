"""The APIs whose adapters have to do the same, each with its fake."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from prime_train.providers.port import Account
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_kubernetes import kubernetes_pods
from tests.adapters.pods_lambda import lambda_pods
from tests.adapters.pods_prime import prime_pods
from tests.adapters.pods_runpod import runpod_pods
from tests.adapters.pods_vast import vast_pods
from tests.adapters.rental_apis import meadow_pods
from tests.adapters.rental_apis.shared import PUBLIC_KEY
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.lambda_cloud import FakeLambdaCloud
from tests.fakes.prime import FakePrime
from tests.fakes.runpod import FakeRunPod
from tests.fakes.vast import FakeVast

Where = Mapping[str, Any]


def _same(fake: Any, seed: int, *, is_searched: bool) -> None:
    """Change nothing."""


@dataclass(frozen=True)
class Api:
    """One provider. `pods`: the pods of a new process, which compares the account with the one in a folder;
    `one`: the path of a pod; `others`: what else is requested for reading, such as the account's keys.
    `account`: its account, if it has one. `vary` changes the fake by the number of a case, before the
    machines for rent are listed and between that and the create call.
    """

    fake: Callable[[Path], AbstractContextManager[Any]]
    pods: Callable[..., Any]
    hardware: HardwareSpec
    catalogue: Where
    lists: Sequence[Where]
    one: Callable[[str], str]
    others: Sequence[Where]
    create: Where
    account: Callable[[Any], Account] | None = None
    vary: Callable[..., None] = _same
    has_one_list: bool = True
    """Whether a list has everything about a machine; otherwise damage of one of several makes a machine look
    like two.
    """


def _vary_vast(fake: FakeVast, seed: int, *, is_searched: bool) -> None:
    """Let a low bid leave an instance behind in each second case, and let bids rise after the search in each
    fourth.
    """
    fake.terms.leaves_stopped = seed % 2 == 0
    if seed % 4 == 0:
        factor = 2 if is_searched else 0.5
        fake.hosts = tuple(replace(host, bid_usd=host.bid_usd * factor) for host in fake.hosts)


GRAPHQL = {"method": "POST", "path": "graphql"}
RUNPOD_PODS = "^/v2/pods$"
RENTAL_APIS = {
    "lambda": Api(
        lambda folder: FakeLambdaCloud(),
        lambda_pods.guarded,
        lambda_pods.HARDWARE,
        {"path": lambda_pods.TYPES},
        [{"path": f"{lambda_pods.INSTANCES}$"}],
        lambda pod_id: f"{lambda_pods.INSTANCES}/{pod_id}",
        [{"path": lambda_pods.KEYS}, {"method": "POST", "path": lambda_pods.KEYS}],
        {"method": "POST", "path": lambda_pods.LAUNCH},
    ),
    "runpod": Api(
        lambda folder: FakeRunPod(),
        runpod_pods.guarded,
        runpod_pods.HARDWARE,
        {"path": "catalog"},
        [{"path": RUNPOD_PODS}],
        lambda pod_id: f"^/v2/pods/{pod_id}",
        [GRAPHQL],
        {"method": "POST", "path": RUNPOD_PODS},
        runpod_pods.account_of,
    ),
    "spot machines of runpod": Api(
        lambda folder: FakeRunPod(),
        partial(runpod_pods.guarded, spot=True),
        runpod_pods.HARDWARE.model_copy(update={"spot": Spot.ONLY}),
        {"path": "catalog"},
        [{"path": RUNPOD_PODS}],
        lambda pod_id: f"^/v2/pods/{pod_id}",
        [GRAPHQL],
        GRAPHQL,
        runpod_pods.account_of,
    ),
    "prime": Api(
        lambda folder: FakePrime(folder, machines=False),
        prime_pods.guarded,
        prime_pods.HARDWARE,
        {"path": "availability"},
        [{"path": "/pods/$"}],
        lambda pod_id: f"/pods/{pod_id}",
        [{"path": path} for path in ("whoami", "wallet", "history", "ssh_keys")],
        {"method": "POST", "path": "/pods/$"},
        prime_pods.account_of,
    ),
    "vast": Api(
        lambda folder: FakeVast(),
        partial(vast_pods.guarded, public_key=PUBLIC_KEY),
        vast_pods.HARDWARE,
        {"method": "POST", "path": vast_pods.SEARCH},
        [{"path": vast_pods.LIST}],
        lambda pod_id: f"^/api/v0/instances/{pod_id}",
        [{"path": "users"}, {"path": "charges"}],
        {"method": "PUT", "path": vast_pods.CREATE},
        vast_pods.account_of,
        _vary_vast,
    ),
    "a provider of ones own": Api(
        meadow_pods.fake_of,
        meadow_pods.guarded,
        meadow_pods.HARDWARE,
        {"path": "kinds"},
        [{"path": "machines$"}],
        lambda pod_id: f"machines/{pod_id}",
        [{"path": "account"}, {"method": "PUT", "path": "machines"}],
        {"method": "POST", "path": "machines$"},
        meadow_pods.account_of,
    ),
}
"""The APIs whose adapters derive from `adapters/rental_api`."""

APIS = {
    **RENTAL_APIS,
    "kubernetes": Api(
        lambda folder: FakeKubernetes(),
        kubernetes_pods.guarded,
        kubernetes_pods.HARDWARE,
        {"path": f"{kubernetes_pods.NODES}$"},
        [{"path": f"{kubernetes_pods.JOBS}$"}, {"path": f"{kubernetes_pods.PODS}$"}],
        lambda pod_id: f"{kubernetes_pods.JOBS}/",
        [{"path": "/api/v1/pods$"}],
        {"method": "POST", "path": f"{kubernetes_pods.JOBS}$"},
        has_one_list=False,
    ),
}
