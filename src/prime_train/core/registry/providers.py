"""The providers of machines: one row each, and one package below `prime_train.adapters` that implements it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from prime_train.core.registry.definitions import ImageForm, ProviderKind, VolumeForm

LOCAL = "local"
"""Name of the provider of the control plane's own machine. The ids of its pods do not begin with a provider's name."""
OWN_MACHINES = (LOCAL, "ssh")
"""Providers whose machines are the operator's own; on `local`, a command runs beside the control plane itself."""

PROVIDERS: dict[str, ProviderKind] = {
    LOCAL: ProviderKind(
        "prime_train.adapters.pods_local.provider:LocalProvider",
        "this machine",
        is_rented=False,
        image_advice="provider local trains on this machine as it is and starts it from no image; delete this key",
    ),
    "prime": ProviderKind(
        "prime_train.adapters.pods_prime.provider:PrimeProvider",
        "Prime Intellect",
        credentials=("PRIME_API_KEY",),
        advice="set PRIME_API_KEY, or log in with `prime login` and set PRIME_TRAIN_PROVIDER=prime",
        documentation="https://docs.primeintellect.ai",
        machines_page="https://app.primeintellect.ai/dashboard",
        image_forms=(ImageForm.NAME, ImageForm.TEMPLATE),
        image_advice=(
            "Prime Intellect starts machines from its own images and from templates, but not from an image in a registry; "
            "make a template of the image on its dashboard, and write template:ID with the template's id"
        ),
    ),
    "runpod": ProviderKind(
        "prime_train.adapters.pods_runpod.provider:RunPodProvider",
        "RunPod",
        credentials=("RUNPOD_API_KEY",),
        advice="set RUNPOD_API_KEY",
        documentation="https://docs.runpod.io",
        machines_page="https://console.runpod.io/pods",
        image_forms=(ImageForm.REFERENCE, ImageForm.TEMPLATE),
        volumes=VolumeForm("network volume", 1, has_sub_paths=False, can_be_read_only=False),
        image_advice=(
            "RunPod has no names for images of its own; write an image in a registry, registry/name@sha256:DIGEST, or template:ID with the "
            "id of a template"
        ),
    ),
    "lambda": ProviderKind(
        "prime_train.adapters.pods_lambda.provider:LambdaProvider",
        "Lambda Cloud",
        credentials=("LAMBDA_API_KEY",),
        advice="set LAMBDA_API_KEY",
        documentation="https://docs.lambda.ai",
        machines_page="https://cloud.lambda.ai/instances",
        image_advice="machines of Lambda Cloud start from its own image, Lambda Stack; delete this key",
    ),
    "kubernetes": ProviderKind(
        "prime_train.adapters.pods_kubernetes.provider:KubernetesProvider",
        "Kubernetes",
        credentials=("PRIME_TRAIN_KUBERNETES",),
        are_settings=True,
        advice="set PRIME_TRAIN_KUBERNETES to a file with settings, or PRIME_TRAIN_PROVIDER=kubernetes to use kubectl's context as it is",
        documentation="https://kubernetes.io/docs",
        image_forms=(ImageForm.REFERENCE,),
        volumes=VolumeForm("PersistentVolumeClaim", 16, has_sub_paths=True, can_be_read_only=True),
        image_advice=(
            "Kubernetes starts pods from images in a registry and knows no other names for them; write registry/name@sha256:DIGEST"
        ),
    ),
    "ssh": ProviderKind(
        "prime_train.adapters.pods_ssh.provider:SshProvider",
        "machines of your own, by SSH",
        credentials=("PRIME_TRAIN_SSH_HOSTS",),
        are_settings=True,
        advice="set PRIME_TRAIN_SSH_HOSTS to a file that lists your machines; see docs/ssh.md",
        image_advice="a machine of your own is used as it is and starts from no image; delete this key",
    ),
    "vast": ProviderKind(
        "prime_train.adapters.pods_vast.provider:VastProvider",
        "Vast.ai",
        credentials=("VAST_API_KEY",),
        advice="set VAST_API_KEY",
        documentation="https://docs.vast.ai",
        machines_page="https://cloud.vast.ai/instances",
        notice_secret="PRIME_TRAIN_VAST_WEBHOOK_SECRET",
        image_forms=(ImageForm.REFERENCE,),
        image_advice="machines of Vast.ai start only from an image in a registry; write registry/name@sha256:DIGEST",
    ),
}


class NamesProviders(Protocol):
    """The part of a config that may name providers."""

    @property
    def provider(self) -> str | None: ...

    @property
    def providers(self) -> tuple[str, ...]: ...


def allowed_providers(hardware: NamesProviders) -> tuple[str, ...]:
    """Return the providers that a config allows to rent from; empty if it leaves that to the control plane."""
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
    """Return the secrets with which notices may be signed: each variable may have several, separated by commas, while one replaces
    another."""
    return tuple(secret.strip() for name in notice_variables() for secret in values.get(name, "").split(",") if secret.strip())


def advice_for(provider: str) -> str:
    """Return what to do if the provider is not set up. `provider` may be a name that the registry does not have."""
    return PROVIDERS[provider].advice if provider in PROVIDERS else "this provider is not known"
