"""What a config of somebody else asks for, which its reader should know before launching it: none of it is a
mistake.
"""

import re
from collections.abc import Iterator

from prime_train.providers.kinds import PROVIDERS, allowed_providers
from prime_train.spec.spec import RunSpec
from prime_train.text.paths import is_inside
from prime_train.text.safe import neutralized

SHOWN_CHARS = 200
REGISTRIES = (
    *(
        "docker.io",
        "ghcr.io",
        "nvcr.io",
        "quay.io",
        "gcr.io",
        "mcr.microsoft.com",
        "public.ecr.aws",
        "registry.k8s.io",
    ),
    *("registry.gitlab.com", "pkg.dev"),
)
"""Registries that many people use, which says nothing about an image in them."""
_LOADERS = frozenset(
    {
        *(
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_AUDIT",
            "PATH",
            "BASH_ENV",
            "ENV",
            "GIT_SSH_COMMAND",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
        ),
        *("PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONBREAKPOINT", "PYTHONUSERBASE"),
    }
)
"""Variables that make programs load other code."""
_ADDRESSES = re.compile(
    r"(HTTPS?|ALL)_PROXY|(PIP|UV)_(EXTRA_|DEFAULT_)?INDEX(_URL)?|PIP_FIND_LINKS|\w*_(ENDPOINT|BASE_URL|"
    r"ENDPOINT_URL\w*)",
    re.IGNORECASE,
)
"""Variables with an address to which programs send what they have, tokens among it, or from which they take
code.
"""


def folder_outside(spec: RunSpec) -> str:
    """Return the folder of the code, if it lies outside of the folder that the config is in; empty if it does
    not.
    """
    folder = spec.trainer.code.folder
    is_within = folder == "." or (
        not folder.startswith("~") and is_inside(folder.removeprefix("./").rstrip("/"))
    )
    return "" if spec.trainer.code.repo or is_within else folder


def risks_of(spec: RunSpec) -> Iterator[str]:
    """Yield each thing that the config asks for beyond machines, time and money, as a sentence without its
    full stop.
    """
    own = [name for name in allowed_providers(spec.hardware) if not PROVIDERS[name].is_rented]
    if own:
        yield (
            "hardware.provider: runs its commands on a machine of yours (provider "
            f"{' and '.join(own)}), "
            "which has your files"
        )
    if spec.secrets:
        yield f"secrets: asks for {_shown(', '.join(spec.secrets))} of your control plane"
    commands = [
        ("setup", len(spec.setup)),
        ("smoke", int(spec.smoke is not None)),
        ("after", len(spec.after)),
    ]
    named = [f"{count} of {part}" for part, count in commands if count]
    more = f", and further commands: {', '.join(named)}" if named else ""
    yield f"trainer.command: runs {_shown(spec.trainer.command or spec.trainer.kind)}{more}"
    if spec.trainer.code.repo:
        yield f"trainer.code.repo: fetches and runs code of {_shown(spec.trainer.code.repo)}"
    for setting, image in (
        ("hardware.image", spec.hardware.image),
        ("image.base", spec.image.base if spec.image is not None else None),
    ):
        registry = _registry(image or "")
        if registry and not any(registry == known or registry.endswith(f".{known}") for known in REGISTRIES):
            yield (
                f"{setting}: starts from an image of {_shown(registry)}, a registry that prime-train "
                "does not know"
            )
    variables = sorted(set(_variables(spec)))
    if loaders := [name for name in variables if name in _LOADERS]:
        yield f"environment: sets {', '.join(loaders)}, which can make programs load other code"
    if addresses := [name for name in variables if _ADDRESSES.fullmatch(name)]:
        yield (
            f"environment: sets {', '.join(addresses)}, by which programs send tokens to, or load "
            "code from, an address of its choice"
        )
    for number, variant in enumerate(spec.hardware.variants, start=1):
        if changed := sorted(key for key in variant.set if not key.startswith("environment.")):
            yield (
                f"hardware.variants: on machines of variant {number}, other values are used "
                "for "
                f"{_shown(', '.join(changed))}"
            )
    if spec.alerts.webhook is not None:
        yield (
            "alerts.webhook: sends what happens to the address in your variable "
            f"{_shown(spec.alerts.webhook)}"
        )


def _variables(spec: RunSpec) -> Iterator[str]:
    """Yield the names of all variables that the config sets for any of its commands."""
    yield from spec.environment
    yield from (name for step in spec.after for name in step.env)
    yield from (
        key.partition(".")[2]
        for variant in spec.hardware.variants
        for key in variant.set
        if key.startswith("environment.")
    )


def _registry(image: str) -> str:
    """Return the host of the image's registry; empty for the provider's own images and for names without a
    host.
    """
    first, slash, _ = image.partition("/")
    return first.partition(":")[0] if slash and ("." in first or ":" in first or first == "localhost") else ""


def _shown(text: str) -> str:
    return neutralized(text[:SHOWN_CHARS])
