"""What the machines of each API go through in a day, and the words in which the API says so."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.pods_kubernetes import kubernetes_pods
from tests.adapters.pods_lambda import lambda_pods
from tests.adapters.pods_prime import prime_pods
from tests.adapters.pods_runpod import runpod_pods
from tests.adapters.pods_vast import vast_pods
from tests.adapters.rental_apis.cases import Where
from tests.adapters.rented_days import Days
from tests.adapters.strikes import IMPOSSIBLE, Strike
from tests.fakes.http import ALWAYS, Fault, Json, Request, Response, Rewrite
from tests.fakes.kubernetes import FakeKubernetes, failure
from tests.fakes.lambda_cloud import FakeLambdaCloud, error
from tests.fakes.lambda_cloud import Status as LambdaStatus
from tests.fakes.prime import End, FakePrime, Plan, detail
from tests.fakes.runpod import FakeRunPod, problem
from tests.fakes.runpod import Status as RunPodStatus
from tests.fakes.vast import FakeVast, refused
from tests.fakes.vast import Status as VastStatus


def _boot(fake: Any, seconds: float) -> None:
    fake.plan.boot_s = seconds


def _hide(machine: Any) -> None:
    machine.hidden = True


def _end(fake: Any, machine_id: str, end: Any) -> None:
    fake.end(machine_id, end)


def _run_dry(fake: Any, machine_id: str) -> None:
    fake.balance_usd = 0.0
    fake.end(machine_id, None)


@dataclass(frozen=True)
class Life:
    """One provider. `garbled`: a change of the answer to the create call after which it names no machine of
    ours; `ends`: the ways in which machines may be taken away, of which the first leaves nothing, and
    `broken` leaves them on the list; `again` makes the create call of a request once more, after which there
    are `twins` machines; `limit`: whether the account may rent; `no_items`: what an empty list has; `delete`:
    the call that ends a machine; `run_dry`: the balance becomes 0, and the provider does with the machine
    what it does then.
    """

    days: Callable[[Any, Path], Days[Any, Any]]
    garbled: Fault
    ends: Sequence[Any]
    broken: Any
    again: Callable[[Any, Request], object]
    limit: Callable[[Any, bool], None]
    too_many: Callable[[dict[str, str]], Response]
    no_items: Json
    delete: Where
    twins: int = 2
    boot: Callable[[Any, float], None] = _boot
    hide: Callable[[Any], None] = _hide
    end: Callable[[Any, str, Any], None] = _end
    run_dry: Callable[[Any, str], None] = _run_dry

    def empty(self, response: Response) -> Response:
        return replace(response, body=json.dumps({**json.loads(response.body), **self.no_items}).encode())

    def cut(self, response: Response) -> Response:
        """Leave the items out, and all that is said about their number as it is."""
        return replace(response, body=json.dumps({**json.loads(response.body), self._items: []}).encode())

    def nameless(self, response: Response) -> Response:
        content = json.loads(response.body)
        items = [
            {key: item[key] for key in item if key not in ("id", "metadata")} for item in content[self._items]
        ]
        return replace(response, body=json.dumps({**content, self._items: items}).encode())

    @property
    def _items(self) -> str:
        return next(iter(self.no_items))


def _answered(body: bytes) -> Rewrite:
    return Rewrite(lambda response: replace(response, body=body))


def _px(response: Response) -> Response:
    return replace(response, body=response.body.replace(b"pt-", b"px-"))


def _order_again(fake: FakeVast, request: Request) -> None:
    first = fake.instances[-1]
    fake.rented(first.ask, first.order, first.account)


def _lambda_quota(fake: FakeLambdaCloud, may_rent: bool) -> None:
    fake.limits.quota = 1 if may_rent else 0


def _runpod_limit(fake: FakeRunPod, may_rent: bool) -> None:
    fake.terms.spend_limit_usd = 80.0 if may_rent else 1.0


def _prime_limit(fake: FakePrime, may_rent: bool) -> None:
    fake.terms.instances_max = 1 if may_rent else 0


def _vast_limit(fake: FakeVast, may_rent: bool) -> None:
    fake.heal()
    if not may_rent:
        limit = refused(400, "invalid_args", "You have reached the limit of instances.")
        fake.fail(limit, times=ALWAYS, method="PUT", path=vast_pods.CREATE)


def _vast_runs_dry(fake: FakeVast, instance_id: str) -> None:
    fake.balance_usd = 0.0
    fake.outbid(instance_id)  # Vast.ai stops all instances then


def _prime_runs_dry(fake: FakePrime, pod_id: str) -> None:
    fake.balance_usd = 0.0


def _jobs_limit(fake: FakeKubernetes, may_rent: bool) -> None:
    fake.limits.jobs = 1 if may_rent else 0


def _prime_boots(fake: FakePrime, seconds: float) -> None:
    fake.plan = Plan(provision_s=seconds)


def _exits(fake: FakeKubernetes, pod_id: str) -> None:
    fake.end_container(pod_id, 137)


LIVES = {
    "lambda": Life(
        lambda_pods.days_of,
        _answered(b'{"data": {"instance_ids": ["../ssh-keys"]}}'),
        [
            None,
            LambdaStatus.TERMINATED,
            LambdaStatus.PREEMPTED,
            LambdaStatus.UNHEALTHY,
            LambdaStatus.TERMINATING,
        ],
        LambdaStatus.UNHEALTHY,
        FakeLambdaCloud.launch,
        _lambda_quota,
        lambda headers: error(429, "global/rate-limited", headers=headers),
        {"data": []},
        {"path": lambda_pods.TERMINATE},
    ),
    "runpod": Life(
        runpod_pods.days_of,
        Rewrite(_px),
        [None, RunPodStatus.TERMINATED, RunPodStatus.EXITED, RunPodStatus.ERROR],
        RunPodStatus.ERROR,
        FakeRunPod.create_pod,
        _runpod_limit,
        lambda headers: problem(429, "Too Many Requests", "slow down", headers=headers),
        {"pods": []},
        {"method": "DELETE"},
    ),
    "prime": Life(
        prime_pods.days_of,
        _answered(b'{"id": "../ssh_keys", "status": "PROVISIONING"}'),
        [End.MISSING, End.TERMINATED, End.ERROR],
        End.ERROR,
        FakePrime.order_again,
        _prime_limit,
        lambda headers: detail(429, "Too many requests", **headers),
        {"data": [], "total_count": 0},
        {"method": "DELETE"},
        boot=_prime_boots,
        end=FakePrime.preempt,
        run_dry=_prime_runs_dry,
    ),
    "vast": Life(
        vast_pods.days_of,
        _answered(b'{"success": true, "new_contract": 7}'),
        [None, VastStatus.EXITED],
        VastStatus.EXITED,
        _order_again,
        _vast_limit,
        lambda headers: Response(
            429, b"API requests too frequent: endpoint threshold=2.0", "text/plain", headers
        ),
        {"instances": [], "instances_found": 0, "total_instances": 0, "next_token": None},
        {"method": "DELETE"},
        run_dry=_vast_runs_dry,
    ),
    "kubernetes": Life(
        kubernetes_pods.days_of,
        Rewrite(_px),
        [FakeKubernetes.forget, FakeKubernetes.disrupt, _exits],
        _exits,
        FakeKubernetes.create_job,
        _jobs_limit,
        lambda headers: failure(429, "TooManyRequests", headers=headers),
        {"items": []},
        {"method": "DELETE"},
        twins=1,
        hide=lambda machine: machine.hide(),
        end=lambda fake, machine_id, end: end(fake, machine_id),
    ),
}


def against(strike: Strike, *, but: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Return the decorator of a test that strikes all of these providers where it can happen, except for
    `but`, which have tests of their own.
    """
    names = [name for name in LIVES if (name, strike) not in IMPOSSIBLE and name not in but]

    def marked(test: Any) -> Any:
        return pytest.mark.strike(strike, *names)(pytest.mark.parametrize("name", names)(test))

    return marked
