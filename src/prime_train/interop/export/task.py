"""What every exported task says, whatever the tool."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from prime_train.buckets.location import PLACES
from prime_train.environment import BUCKET, POD_PYTHON
from prime_train.interop.export.machine_files import SCRIPT, MachineFiles
from prime_train.spec.image_contents import FOLDER
from prime_train.spec.spec import RunSpec

PLACE = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that say where a bucket is, and are no secrets."""
GRACE_MARGIN_S = 30


@dataclass(frozen=True)
class Task:
    """A task. `spec`: the config of the machine, with one variant, before it was bound to the machine;
    `image`: the container image, empty if none was chosen; `environment`: variables with their values;
    `secrets`: the names of those whose values the task must not contain; `python`: an interpreter of the
    image that has prime-train, empty if it is to be installed.
    """

    spec: RunSpec
    contents: MachineFiles
    image: str
    environment: Mapping[str, str]
    secrets: tuple[str, ...]
    python: str = ""

    @property
    def name(self) -> str:
        return self.contents.task

    @property
    def gpus(self) -> int:
        """Return the number of GPUs; 0 if the config names no kinds."""
        return self.spec.hardware.count if self.spec.hardware.gpus else 0

    @property
    def grace_s(self) -> int:
        """Return how many seconds the machine needs to save and leave."""
        return self.spec.health.drain_s + GRACE_MARGIN_S

    def command(self, files: str, disk: str) -> str:
        """Return the shell's command that becomes prime-train. The folders may contain variables."""
        return (
            f'exec sh "{files}/{SCRIPT}" alone - {self.contents.digest} "{self.python}" '
            f"{FOLDER} "
            f'"{files}" "{disk}"'
        )


@dataclass(frozen=True)
class Written:
    """A task as a tool reads it: its main file by name and text, and further files below `files`. `apply`:
    the commands that start it; `notes`: what the tool cannot be told, or does differently.
    """

    main: str
    text: str
    apply: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()


Writer = Callable[[Task], Written]


def task_of(
    spec: RunSpec, contents: MachineFiles, bucket_url: str, environment: Mapping[str, str], image: str
) -> Task:
    """Return the task of a config. Of `environment`, that of the caller, the bucket's place is used, and the
    interpreter that images have."""
    place = {name: environment[name] for name in PLACE if environment.get(name)}
    scheme = PLACES.get(urlsplit(bucket_url).scheme)
    needs = (
        {}
        if scheme is None
        else {name: environment[name] for _, name in scheme.needs if environment.get(name)}
    )
    keys = scheme.keys if scheme is not None else ()
    alert = (spec.alerts.webhook,) if spec.alerts.webhook is not None else ()
    chosen = spec.variant(0) if spec.hardware.variants else spec
    secrets = tuple(dict.fromkeys((*keys, *alert, *chosen.secrets)))
    variables = {BUCKET: bucket_url, **(place | needs if scheme is not None else {})}
    return Task(chosen, contents, image, variables, secrets, environment.get(POD_PYTHON, "").strip())


def kubernetes_text(words: str) -> str:
    """Return a text in which Kubernetes expands nothing: it replaces $(NAME) and halves $$."""
    return re.sub(r"\$(?=[$(])", "$$", words)
