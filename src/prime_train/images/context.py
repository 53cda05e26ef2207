"""The build context: the Dockerfile, the steps that it runs, the agent, and the requirements of the trainer's
environment. Nothing else.

Of the working tree it contains only the requirements, which have to be tracked by git, so that no file that
happens to lie there gets into an image. Its hash is the tag of the image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from prime_train.checks.validate import check_run_config
from prime_train.configs.code_folder import folder_outside, outside_finding
from prime_train.errors import UsageError
from prime_train.launch.code.archive import checkout_of, same_repository, tracked_files
from prime_train.launch.launch_config import InvalidConfig
from prime_train.providers.install.agent_bundle import pack, package_folders
from prime_train.spec.finding import Finding, has_errors
from prime_train.spec.image_contents import AGENT, ENVIRONMENT, FOLDER, digest_of, environment_files
from prime_train.spec.reader import Config, read_config
from prime_train.spec.spec import ImageSpec, RunSpec
from prime_train.spec.tree import place_of

STEPS = ("install.sh", "layers.py", "start.sh")
DOCKERFILE = "Dockerfile"


@dataclass(frozen=True)
class BuildContext:
    """The files of a build context by name. `environment`: the hash of the trainer's environment; empty if
    the config describes none.
    """

    config: str
    files: Mapping[str, bytes] = field(repr=False)
    environment: str

    @property
    def tag(self) -> str:
        """The hash of all files."""
        return digest_of(self.files)

    @property
    def dockerfile(self) -> str:
        return self.files[DOCKERFILE].decode()

    def write(self, folder: Path) -> None:
        """Write the files into a folder that does not exist yet or is empty. Raises UsageError if it has
        files.
        """
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(
                f"{folder} is not empty", fix="name a new folder, so that nothing else gets into the image"
            )
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def build_context(config: Path) -> BuildContext:
    """Return the build context of a config.

    Raises InvalidConfig if the config or its requirements have errors, UsageError if files are not tracked or
    not here, and PermanentError if the agent is not available as files.
    """
    read = read_config(config)
    found, sources = check_run_config(read)
    if read.spec is None or has_errors(found):
        raise InvalidConfig(found, sources)
    spec, image = read.spec, read.spec.image or ImageSpec()
    outside = folder_outside(spec.trainer.code.folder, read.file) if spec.trainer.code.repo is None else None
    if outside is not None:
        raise InvalidConfig((outside_finding(outside, read.file),), sources)
    untracked = _untracked(read, spec, image)
    if untracked:
        raise InvalidConfig(untracked, sources)
    environment = environment_files(image, lambda name: (_tree(spec) / name).read_bytes())
    is_described = bool(image.requirements or image.packages)
    steps = Path(__file__).with_name("steps")
    files = {
        DOCKERFILE: dockerfile(image).encode(),
        **{name: (steps / name).read_bytes() for name in STEPS},
        **{f"{AGENT}/{name}": content for name, content in _agent().items()},
        **(
            {f"{ENVIRONMENT}/{name}": content for name, content in environment.items()}
            if is_described
            else {}
        ),
    }
    return BuildContext(spec.name, files, digest_of(environment) if is_described else "")


def _tree(spec: RunSpec) -> Path:
    """Return the working tree on this machine. Raises UsageError if it is a repository whose checkout is not
    the current folder.
    """
    code = spec.trainer.code
    if code.repo is None:
        return Path(code.folder)
    checkout = checkout_of(Path())
    if checkout is None or not any(same_repository(code.repo, remote) for remote in checkout.remotes):
        raise UsageError(
            f"the requirements are read from a checkout of {code.repo}",
            fix="run the command in such a checkout",
        )
    return Path()


def _untracked(read: Config, spec: RunSpec, image: ImageSpec) -> tuple[Finding, ...]:
    """Return a finding for each file of requirements that git does not track."""
    if not image.requirements:
        return ()
    folder = _tree(spec).resolve()
    tracked = tracked_files(folder)
    if tracked is None:
        raise UsageError(
            f"{folder} is not a git checkout, so nothing shows which of its files may become part of an "
            "image",
            fix="git init, and git add what belongs to the project",
        )
    found = []
    for at, name in enumerate(image.requirements):
        path = (folder / name).resolve()
        inside = str(PurePosixPath(path.relative_to(folder))) if path.is_relative_to(folder) else ""
        if not path.is_file() or inside not in tracked:
            place = place_of(read.root, ("image", "requirements", at)) if read.root is not None else None
            line, column = (place.line, place.column) if place is not None else (1, 1)
            why = "is not tracked by git" if path.is_file() else "does not exist"
            message = f"{name} {why} in {folder}, and only tracked files become part of an image"
            found.append(
                Finding("PT025", message, read.file, line, column, fix=f"git add {name}", value=name)
            )
    return tuple(found)


def _agent() -> Mapping[str, bytes]:
    """Return the files of the agent. Raises UsageError if the checkout that it comes from has other files
    beside its modules.
    """
    for folder in package_folders():
        tracked = tracked_files(folder)
        # An installed package is in no checkout, or in one that does not track it.
        if not tracked:
            continue
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if path.is_file() and "__pycache__" not in inside.parts and inside.as_posix() not in tracked:
                raise UsageError(
                    f"{path} is not tracked by git, and would become part of the image",
                    fix="git add it, or remove it",
                )
    return pack().files


USER, USER_ID = "trainer", 10001
SSH_SERVER = "openssh-server"
LAYERS = "/layers"
LAYERS_MAX = 12
"""Number of layers that what is installed is spread over; the last ones may be empty."""
LAYER_BYTES_MAX = 3 * 2**30
"""Bytes of files in one of them, before they are compressed: well below the 10 GB that a registry takes
(https://docs.github.com/packages/working-with-a-github-packages-registry/working-with-the-container-registry).
"""
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
        "# Written by prime-train; the same config and the same files of the build context give the same "
        "text.",
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
