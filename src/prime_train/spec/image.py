"""Which image a machine starts from, and which forms of naming one each provider takes."""

import re
from collections.abc import Sequence

from prime_train.providers.kinds import PROVIDERS, ImageForm

BASE_IMAGE = (
    "docker.io/library/python@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254"
)
"""The default of `image.base`: python:3.12-slim-bookworm of September 2026. Wheels of trainers bring CUDA's
libraries with them, and the driver comes from the machine.
"""
TEMPLATE = "template:"
_NAME = re.compile(r"[a-z0-9_]{1,100}")
_TEMPLATE = re.compile(r"template:[A-Za-z0-9_-]{1,100}")
_PART = "[a-z0-9][a-z0-9._-]{0,100}"
_REFERENCE = re.compile(
    rf"{_PART}(:[0-9]{{1,5}})?(/{_PART}){{0,8}}(:[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})?@sha256:[0-9a-f]{{64}}"
)
_SHOWN_CHARS = 100


def is_reference(image: str) -> bool:
    """Return whether this names an image in a registry by its digest."""
    return _REFERENCE.fullmatch(image) is not None


def form_of(image: str) -> ImageForm:
    """Return the form of a valid `hardware.image`."""
    if image.startswith(TEMPLATE):
        return ImageForm.TEMPLATE
    return ImageForm.REFERENCE if "@" in image else ImageForm.NAME


def violation_of_image(providers: Sequence[str], image: str | None) -> str | None:
    """Return why no machine starts from this image, with what to do after a semicolon; None if it may start.
    `providers`: those that may be rented from; empty if that is not known yet.
    """
    if image is None:
        return None
    if not any(form.fullmatch(image) for form in (_NAME, _TEMPLATE, _REFERENCE)):
        forms = "the provider's name for an image, template:ID, or registry/name@sha256:DIGEST"
        return f"{image[:_SHOWN_CHARS]!r} names no image; write {forms}"
    rows = [PROVIDERS[name] for name in providers]
    return next((row.image_advice for row in rows if form_of(image) not in row.image_forms), None)
