"""The text of the Dockerfile, which depends on the config only: the agent and the requirements are files of the context."""

from prime_train.spec.image_contents import FOLDER
from prime_train.spec.spec import ImageSpec

USER, USER_ID = "trainer", 10001
SSH_SERVER = "openssh-server"
LAYERS = "/layers"
LAYERS_MAX = 12
"""Number of layers that what is installed is spread over; the last ones may be empty."""
LAYER_BYTES_MAX = 3 * 2**30
"""Bytes of files in one of them, before they are compressed: well below the 10 GB that a registry takes
(https://docs.github.com/packages/working-with-a-github-packages-registry/working-with-the-container-registry)."""
_LEFT_BEHIND = (
    "/var/lib/apt/lists/*",
    "/var/cache/apt/*",
    "/var/cache/debconf/*-old",
    "/var/cache/ldconfig/aux-cache",
    "/var/log/*",
    "/var/lib/dpkg/*-old",
    # A key that is part of an image is everybody's.
    "/etc/ssh/ssh_host_*",
)


def dockerfile(image: ImageSpec) -> str:
    """Return the text of the Dockerfile."""
    packages = _packages(image)
    lines = [
        "# Written by prime-train; the same config and the same files of the build context give the same text.",
        f"FROM {image.base} AS base",
        "# hadolint ignore=DL3002",
        "USER 0",
        *([] if all("=" in name for name in packages) else ["# hadolint ignore=DL3008"]),
        "RUN apt-get update \\",
        "  && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \\",
        *(f"    {name} \\" for name in packages),
        "  && rm -rf \\",
        *(f"    {path}{' ' + chr(92) if path is not _LEFT_BEHIND[-1] else ''}" for path in _LEFT_BEHIND),
        "",
        "FROM base AS build",
        "ARG SOURCE_DATE_EPOCH=0",
        "COPY . /context",
        f"RUN sh /context/install.sh /context {FOLDER} \\",
        f"  && python3 /context/layers.py {FOLDER} {LAYERS} {LAYER_BYTES_MAX} {LAYERS_MAX}",
        "",
        "FROM base",
        "ARG SOURCE_DATE_EPOCH=0",
        *_user(image),
        *(f"COPY --from=build {LAYERS}/{number} /" for number in range(LAYERS_MAX)),
        "# What makes the driver of the machine, and its libraries, appear in the container.",
        "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        f'CMD ["sh", "{FOLDER}/start.sh"]',
    ]
    return "\n".join(lines) + "\n"


def _packages(image: ImageSpec) -> list[str]:
    named = {name.partition("=")[0] for name in image.packages}
    return sorted({*image.packages, *({SSH_SERVER, "ca-certificates"} - named)})


def _user(image: ImageSpec) -> list[str]:
    if image.root:
        return ["WORKDIR /root"]
    return [
        f"RUN useradd --uid {USER_ID} --no-log-init --create-home --shell /bin/bash {USER} \\",
        "  && rm -f /etc/passwd- /etc/shadow- /etc/group- /etc/gshadow- /etc/subuid- /etc/subgid-",
        f"USER {USER_ID}",
        f"WORKDIR /home/{USER}",
    ]
