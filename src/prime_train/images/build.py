"""Runs the builder that is there: docker, podman or buildah."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.errors import PermanentError, UsageError
from prime_train.images.context import BuildContext
from prime_train.text.safe import neutralized

EPOCH_S = 315_532_800
"""Time of all files that a build makes: the beginning of 1980, as in the agent's wheel."""
PLATFORM = "linux/amd64"
"""The machines that are rented have x86-64 processors, whatever this one has."""
BUILDERS = ("docker", "podman", "buildah")
PROBE_S_MAX = 30.0
LAYER_BYTES_MAX = 10 * 10**9
"""Largest layer that GitHub's registry takes, compressed; a builder tells the size before that."""
MADE_BY_CHARS_MAX = 200
ADVICE = Advice(
    "install one, or write the build context and build it elsewhere: ", Option(SettingAdvice.OUTPUT, "FOLDER")
)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,100}(:[0-9]{1,5}(?=/))?(/[a-z0-9][a-z0-9._-]{0,100}){0,8}")

# Each fails where its service, or what it needs of the system, is missing.
_PROBES: Mapping[str, Sequence[str]] = {
    "docker": ("docker", "version", "--format", "{{.Server.Version}}"),
    "podman": ("podman", "info"),
    "buildah": ("buildah", "info"),
}


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built. `environment`: the hash of the trainer's environment in it; empty: there is
    none.
    """

    image: str
    builder: str
    environment: str


def image_name(context: BuildContext, name: str = "") -> str:
    """Return the name of the image with its tag. Raises UsageError if `name` is not the name of an image, or
    has a tag of its own.
    """
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:200]!r} is not the name of an image without a tag",
            fix="write a name such as ghcr.io/owner/trainer",
        )
    return f"{name or f'prime-train/{context.config}'}:{context.tag}"


def build(context: BuildContext, *, name: str = "", builder: str = "") -> BuiltImage:
    """Build the image and return it; the builder's output goes to stderr. `name`: of the image, without a
    tag.

    Raises UsageError if there is no builder or it is not known, and PermanentError if the build fails.
    """
    chosen = find_builder(builder)
    image = image_name(context, name)
    with tempfile.TemporaryDirectory(prefix="prime-train-image-") as folder:
        context.write(Path(folder))
        # Standard output is kept for the command's own result.
        done = subprocess.run(
            command(chosen, image, Path(folder)),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=_environment(),
        )
    if done.returncode != 0:
        raise PermanentError(
            f"{chosen} could not build {image}: exit code {done.returncode}", fix="see its last lines above"
        )
    _check_layers(chosen, image)
    return BuiltImage(image, chosen, context.environment)


def _check_layers(builder: str, image: str) -> None:
    """Raise PermanentError if a layer is too large for a registry. Buildah does not tell the sizes of
    layers.
    """
    if builder == "buildah":
        return
    words = [
        builder,
        "history",
        "--no-trunc",
        "--human=false",
        "--format",
        "{{.Size}}\t{{.CreatedBy}}",
        image,
    ]
    done = subprocess.run(
        words,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=PROBE_S_MAX,
        env=_environment(),
    )
    if done.returncode != 0:
        raise PermanentError(
            f"{builder} built {image}, but does not tell its layers: exit code {done.returncode}",
            fix="build it again",
        )
    for line in done.stdout.decode(errors="replace").splitlines():
        size, _, made_by = line.partition("\t")
        if size.strip().isdecimal() and int(size) > LAYER_BYTES_MAX:
            made = neutralized(" ".join(made_by.split()))[:MADE_BY_CHARS_MAX]
            message = (
                f"{image} has a layer of {int(size) / 1e9:.1f} GB, and registries take at "
                "most "
                f"{LAYER_BYTES_MAX / 1e9:g} GB: {made}"
            )
            raise PermanentError(message, fix="take a smaller image.base, or fewer image.packages")


def command(builder: str, image: str, folder: Path) -> list[str]:
    """Return the builder's command line."""
    common = [
        f"--build-arg=SOURCE_DATE_EPOCH={EPOCH_S}",
        f"--platform={PLATFORM}",
        "--tag",
        image,
        str(folder),
    ]
    if builder == "docker":
        return ["docker", "build", "--provenance=false", *common]
    # The image and its layers get this time, too; docker takes it from the argument.
    # Without --layers, all that is copied would be one layer; without --no-cache, an old one could be taken.
    return [builder, "build", "--layers", "--no-cache", f"--timestamp={EPOCH_S}", *common]


def find_builder(wanted: str = "") -> str:
    """Return the name of a builder that works here, the wanted one if one is named. Raises UsageError if
    there is none.
    """
    if wanted and wanted not in BUILDERS:
        raise UsageError(
            f"{wanted!r} is no builder that is known", fix=f"choose one of {', '.join(BUILDERS)}"
        )
    missing = []
    for name in (wanted,) if wanted else BUILDERS:
        why = _why_not(name)
        if not why:
            return name
        missing.append(f"{name} {why}")
    raise UsageError(f"no image can be built here: {'; '.join(missing)}", fix=ADVICE)


def _why_not(name: str) -> str:
    if shutil.which(name) is None:
        return "is not installed"
    try:
        done = subprocess.run(
            _PROBES[name],
            capture_output=True,
            timeout=PROBE_S_MAX,
            check=False,
            stdin=subprocess.DEVNULL,
            env=_environment(),
        )
    except subprocess.TimeoutExpired:
        return f"did not answer within {PROBE_S_MAX:g} s"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return (
        f"does not work: {lines[-1][:200] if lines else f'exit code {done.returncode}'}"
        if done.returncode != 0
        else ""
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "DOCKER_BUILDKIT": "1", "SOURCE_DATE_EPOCH": str(EPOCH_S)}
