"""The fakes of providers whose machines are processes that answer SSH, as a control plane is told of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.lambda_cloud import FakeLambdaCloud
from tests.fakes.lambda_cloud.server import API_KEY
from tests.fakes.machine_images import CONDA, RUNPOD_24_04, UBUNTU_22_04, UBUNTU_24_04, Image
from tests.fakes.prime import FakePrime
from tests.fakes.prime.pods import Plan as PrimePlan
from tests.fakes.runpod import FakeRunPod
from tests.fakes.vast import FakeVast


@dataclass(frozen=True)
class Rented:
    """A provider's fake: its settings, its pods that are paid for, and how one is taken away."""

    fake: Any

    settings: dict[str, str]
    alive: Callable[[], list[Any]]
    take: Callable[[str], object]


@contextmanager
def prime(folder: Path, image: Image) -> Iterator[Rented]:
    with FakePrime(folder / "rented", running=True) as fake:
        fake.plan = PrimePlan(image=image)
        yield Rented(
            fake,
            {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url},
            lambda: fake.alive,
            fake.preempt,
        )


@contextmanager
def runpod(folder: Path, image: Image) -> Iterator[Rented]:
    with FakeRunPod(running=True, home=folder / "rented") as fake:
        fake.plan.image = image
        settings = {"RUNPOD_API_KEY": fake.api_key, "RUNPOD_API_BASE_URL": fake.url}
        yield Rented(fake, settings, lambda: fake.alive, lambda pod_id: fake.end(pod_id, None))


@contextmanager
def vast(folder: Path, image: Image) -> Iterator[Rented]:
    with FakeVast(running=True, home=folder / "rented") as fake:
        fake.plan.image = image
        yield Rented(
            fake,
            {"VAST_API_KEY": fake.api_key, "VAST_URL": fake.url},
            lambda: fake.alive,
            lambda pod_id: fake.end(pod_id, None),
        )


@contextmanager
def lambda_cloud(folder: Path, image: Image) -> Iterator[Rented]:
    with FakeLambdaCloud(running=True, home=folder / "rented") as fake:
        fake.plan.image = image
        settings = {"LAMBDA_API_KEY": API_KEY, "LAMBDA_API_BASE_URL": fake.url}
        yield Rented(fake, settings, lambda: fake.alive, lambda pod_id: fake.end(pod_id, None))


# Which images differ is the same at each provider; which providers differ is how a machine is reached.
PROVIDERS = {"prime": prime, "runpod": runpod, "vast": vast, "lambda": lambda_cloud}
USUAL = {"prime": UBUNTU_24_04, "runpod": RUNPOD_24_04, "vast": CONDA, "lambda": UBUNTU_22_04}
"""Of each provider, an image that its machines start from."""
