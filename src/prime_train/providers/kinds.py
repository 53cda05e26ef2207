"""The providers of machines: one row each, and one package below `prime_train.providers` that implements
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from prime_train.trainers.kind import VolumeForm


class ImageForm(StrEnum):
    """How a config names the image that a machine starts from."""

    NAME = "name"
    """The name of an image that the provider offers itself."""
    TEMPLATE = "template"
    """A template that was made with the provider, by its id."""
    REFERENCE = "reference"
    """An image in a registry, by its digest."""


@dataclass(frozen=True)
class ProviderKind:
    """A provider of machines; its key in the registry is what `hardware.provider` and `hardware.providers`
    contain.
    """

    implementation: str
    """The class that implements the port of providers, as `package.module:Class`; it is created with a
    `ProviderContext`.
    """
    title: str
    """The provider's name as people write it."""
    is_rented: bool = True
    """Whether its machines are rented; otherwise they are the control plane's own."""
    credentials: tuple[str, ...] = ()
    """The environment variables with its credentials. The provider is set up if all of them are set, or if it
    is chosen by name.
    """
    are_settings: bool = False
    """Whether its credentials are a YAML text, or the path of a file with it, that may name further files of
    the user's machine.
    """
    advice: str = ""
    """Advice for the user if the provider is not set up."""
    documentation: str = ""
    """The address of its documentation."""
    machines_page: str = ""
    """The address of the page on which a person sees and ends machines; empty: it has none."""
    image_forms: tuple[ImageForm, ...] = ()
    """The forms of `hardware.image` that it takes."""
    volumes: VolumeForm | None = None
    """How it mounts volumes; None: it mounts none."""
    notice_secret: str = ""
    """The environment variable with the secret with which it signs its notices; empty: it sends none."""
    image_advice: str = "it does not start machines from an image that a config names; delete this key"
    """Why it takes no other forms, and after a semicolon what to do instead."""

    @property
    def summary(self) -> str:
        return f"is {self.title}"


LOCAL = "local"
"""Name of the provider of the control plane's own machine. The ids of its pods do not begin with a provider's
name.
"""
OWN_MACHINES = (LOCAL, "ssh")
"""Providers whose machines are the operator's own; on `local`, a command runs beside the control plane
itself.
"""

PROVIDERS: dict[str, ProviderKind] = {
    LOCAL: ProviderKind(
        "prime_train.providers.local.provider:LocalProvider",
        "this machine",
        is_rented=False,
        image_advice="provider local trains on this machine as it is and starts it from no image; delete "
        "this key",
    ),
    "prime": ProviderKind(
        "prime_train.providers.prime.provider:PrimeProvider",
        "Prime Intellect",
        credentials=("PRIME_API_KEY",),
        advice="set PRIME_API_KEY, or log in with `prime login` and set PRIME_TRAIN_PROVIDER=prime",
        documentation="https://docs.primeintellect.ai",
        machines_page="https://app.primeintellect.ai/dashboard",
        image_forms=(ImageForm.NAME, ImageForm.TEMPLATE),
        image_advice=(
            "Prime Intellect starts machines from its own images and from templates, but not from an image "
            "in a registry; make a template of the image on its dashboard, and write template:ID with the "
            "template's id"
        ),
    ),
    "runpod": ProviderKind(
        "prime_train.providers.runpod.provider:RunPodProvider",
        "RunPod",
        credentials=("RUNPOD_API_KEY",),
        advice="set RUNPOD_API_KEY",
        documentation="https://docs.runpod.io",
        machines_page="https://console.runpod.io/pods",
        image_forms=(ImageForm.REFERENCE, ImageForm.TEMPLATE),
        volumes=VolumeForm("network volume", 1, has_sub_paths=False, can_be_read_only=False),
        image_advice=(
            "RunPod has no names for images of its own; write an image in a registry, "
            "registry/name@sha256:DIGEST, or template:ID with the id of a template"
        ),
    ),
    "lambda": ProviderKind(
        "prime_train.providers.lambda_cloud.provider:LambdaProvider",
        "Lambda Cloud",
        credentials=("LAMBDA_API_KEY",),
        advice="set LAMBDA_API_KEY",
        documentation="https://docs.lambda.ai",
        machines_page="https://cloud.lambda.ai/instances",
        image_advice="machines of Lambda Cloud start from its own image, Lambda Stack; delete this key",
    ),
    "kubernetes": ProviderKind(
        "prime_train.providers.kubernetes.provider:KubernetesProvider",
        "Kubernetes",
        credentials=("PRIME_TRAIN_KUBERNETES",),
        are_settings=True,
        advice="set PRIME_TRAIN_KUBERNETES to a file with settings, or PRIME_TRAIN_PROVIDER=kubernetes to "
        "use kubectl's context as it is",
        documentation="https://kubernetes.io/docs",
        image_forms=(ImageForm.REFERENCE,),
        volumes=VolumeForm("PersistentVolumeClaim", 16, has_sub_paths=True, can_be_read_only=True),
        image_advice=(
            "Kubernetes starts pods from images in a registry and knows no other names for them; write "
            "registry/name@sha256:DIGEST"
        ),
    ),
    "ssh": ProviderKind(
        "prime_train.providers.ssh.provider:SshProvider",
        "machines of your own, by SSH",
        credentials=("PRIME_TRAIN_SSH_HOSTS",),
        are_settings=True,
        advice="set PRIME_TRAIN_SSH_HOSTS to a file that lists your machines; see docs/ssh.md",
        image_advice="a machine of your own is used as it is and starts from no image; delete this key",
    ),
    "vast": ProviderKind(
        "prime_train.providers.vast.provider:VastProvider",
        "Vast.ai",
        credentials=("VAST_API_KEY",),
        advice="set VAST_API_KEY",
        documentation="https://docs.vast.ai",
        machines_page="https://cloud.vast.ai/instances",
        notice_secret="PRIME_TRAIN_VAST_WEBHOOK_SECRET",
        image_forms=(ImageForm.REFERENCE,),
        image_advice="machines of Vast.ai start only from an image in a registry; write "
        "registry/name@sha256:DIGEST",
    ),
}


class NamesProviders(Protocol):
    """The part of a config that may name providers."""

    @property
    def provider(self) -> str | None: ...

    @property
    def providers(self) -> tuple[str, ...]: ...


def allowed_providers(hardware: NamesProviders) -> tuple[str, ...]:
    """Return the providers that a config allows to rent from; empty if it leaves that to the control
    plane.
    """
    return (hardware.provider,) if hardware.provider is not None else hardware.providers


def is_rented(providers: Sequence[str]) -> bool:
    """Return whether a config names providers, and they rent out machines."""
    return bool(providers) and all(PROVIDERS[name].is_rented for name in providers)


def is_own_machine(providers: Sequence[str]) -> bool:
    """Return whether a config names a provider whose machines are not rented."""
    return bool(providers) and not is_rented(providers)


def credentials() -> frozenset[str]:
    """Return the names of the variables with any provider's credentials. Runs never get them."""
    return frozenset(name for row in PROVIDERS.values() for name in row.credentials)


def notice_variables() -> tuple[str, ...]:
    """Return the names of the variables with the secrets of providers' notices. Runs never get them."""
    return tuple(row.notice_secret for row in PROVIDERS.values() if row.notice_secret)


def notice_secrets(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets with which notices may be signed: each variable may have several, separated by
    commas, while one replaces another.
    """
    return tuple(
        secret.strip()
        for name in notice_variables()
        for secret in values.get(name, "").split(",")
        if secret.strip()
    )


def advice_for(provider: str) -> str:
    """Return what to do if the provider is not set up. `provider` may be a name that the registry does not
    have.
    """
    return PROVIDERS[provider].advice if provider in PROVIDERS else "this provider is not known"
