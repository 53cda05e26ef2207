"""The rental APIs whose adapters have to do the same, each with its fake, and the words in which its API says things."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from prime_train.adapters.rental_api.pods import RentalPods
from prime_train.core.spec import HardwareSpec
from prime_train.core.spec_choices import Spot
from tests.adapters.pods_lambda import lambda_pods
from tests.adapters.pods_prime import prime_pods
from tests.adapters.pods_runpod import runpod_pods
from tests.adapters.rented_days import Days
from tests.fakes.http import Fault, Request, Response, Rewrite
from tests.fakes.lambda_cloud import FakeLambdaCloud, error
from tests.fakes.lambda_cloud import Status as LambdaStatus
from tests.fakes.prime import FakePrime
from tests.fakes.runpod import FakeRunPod, problem
from tests.fakes.runpod import Status as RunPodStatus

Where = Mapping[str, Any]


@dataclass(frozen=True)
class Life:
    """What a provider's machines go through in a day. `garbled`: changes of the answer to the create call after which it names no machine
    of ours; `ends`: the statuses that taken machines may have, of which `broken` leaves them on the list; `again` makes the create
    call of a request once more; `limit`: whether the account may rent."""

    days: Callable[[Any, Path], Days[Any, Any]]
    garbled: Sequence[Fault]
    ends: Sequence[Any]
    broken: Any
    again: Callable[[Any, Request], object]
    limit: Callable[[Any, bool], None]
    too_many: Callable[[dict[str, str]], Response]
    items: str
    """Where a list has its pods."""

    def empty(self, response: Response) -> Response:
        return replace(response, body=json.dumps({self.items: []}).encode())

    def nameless(self, response: Response) -> Response:
        pods = [{key: pod[key] for key in pod if key != "id"} for pod in json.loads(response.body)[self.items]]
        return replace(response, body=json.dumps({self.items: pods}).encode())


@dataclass(frozen=True)
class Api:
    """One provider. `others`: what else is requested for reading, such as the account's keys; `one`: the path of a pod."""

    fake: Callable[[Path], AbstractContextManager[Any]]
    pods: Callable[..., RentalPods[Any, Any]]
    hardware: HardwareSpec
    catalogue: str
    list: Where
    one: Callable[[str], str]
    others: Sequence[Where]
    create: Where
    life: Life | None = None


def _px(response: Response) -> Response:
    return replace(response, body=response.body.replace(b"pt-", b"px-"))


def _lambda_quota(fake: FakeLambdaCloud, may_rent: bool) -> None:
    fake.limits.quota = 1 if may_rent else 0


def _runpod_limit(fake: FakeRunPod, may_rent: bool) -> None:
    fake.terms.spend_limit_usd = 80.0 if may_rent else 1.0


APIS = {
    "lambda": Api(
        lambda folder: FakeLambdaCloud(),
        lambda_pods.pods_of,
        lambda_pods.HARDWARE,
        lambda_pods.TYPES,
        {"method": "GET", "path": f"{lambda_pods.INSTANCES}$"},
        lambda pod_id: f"{lambda_pods.INSTANCES}/{pod_id}",
        [{"method": "GET", "path": lambda_pods.KEYS}, {"method": "POST", "path": lambda_pods.KEYS}],
        {"method": "POST", "path": lambda_pods.LAUNCH},
        Life(
            lambda_pods.days_of,
            [Rewrite(lambda response: replace(response, body=b'{"data": {"instance_ids": ["../ssh-keys"]}}'))],
            [None, LambdaStatus.TERMINATED, LambdaStatus.PREEMPTED, LambdaStatus.UNHEALTHY, LambdaStatus.TERMINATING],
            LambdaStatus.UNHEALTHY,
            FakeLambdaCloud.launch,
            _lambda_quota,
            lambda headers: error(429, "global/rate-limited", headers=headers),
            "data",
        ),
    ),
    "runpod": Api(
        lambda folder: FakeRunPod(),
        runpod_pods.pods_of,
        runpod_pods.HARDWARE,
        "catalog",
        {"method": "GET", "path": "^/v2/pods$"},
        lambda pod_id: f"^/v2/pods/{pod_id}",
        [{"method": "POST", "path": "graphql"}],
        {"method": "POST", "path": "^/v2/pods$"},
        Life(
            runpod_pods.days_of,
            [Rewrite(_px)],
            [None, RunPodStatus.TERMINATED, RunPodStatus.EXITED, RunPodStatus.ERROR],
            RunPodStatus.ERROR,
            FakeRunPod.create_pod,
            _runpod_limit,
            lambda headers: problem(429, "Too Many Requests", "slow down", headers=headers),
            "pods",
        ),
    ),
    "spot machines of runpod": Api(
        lambda folder: FakeRunPod(),
        partial(runpod_pods.pods_of, spot=True),
        runpod_pods.HARDWARE.model_copy(update={"spot": Spot.ONLY}),
        "catalog",
        {"method": "GET", "path": "^/v2/pods$"},
        lambda pod_id: f"^/v2/pods/{pod_id}",
        [],
        {"method": "POST", "path": "graphql"},
    ),
    "prime": Api(
        lambda folder: FakePrime(folder, machines=False),
        prime_pods.pods_of,
        prime_pods.HARDWARE,
        "availability",
        {"method": "GET", "path": "/pods/$"},
        lambda pod_id: f"/pods/{pod_id}",
        [{"method": "GET", "path": "whoami"}],
        {"method": "POST", "path": "/pods/$"},
    ),
}
