"""Settings for RunPod, from the variables of its own client."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.errors import PermanentError
from prime_train.providers.rental.user_settings import key_from, url_from

TITLE = "RunPod"
BASE_URL = "https://api.runpod.io"
KEY = "RUNPOD_API_KEY"
ADDRESS = "RUNPOD_API_BASE_URL"
CLOUD = "PRIME_TRAIN_RUNPOD_CLOUD"
CLOUDS = ("SECURE", "COMMUNITY")
SPOT = "PRIME_TRAIN_RUNPOD_SPOT"


@dataclass(frozen=True)
class RunPodSettings:
    key: str = field(repr=False)
    base_url: str = BASE_URL
    """Address of both APIs, without `/v2` and `/graphql`."""
    clouds: tuple[str, ...] = CLOUDS
    """The clouds whose machines are rented."""
    spot: bool = False
    """Whether spot machines are offered, too."""


def read_settings(environment: Mapping[str, str]) -> RunPodSettings:
    """Return the settings from RUNPOD_API_KEY, RUNPOD_API_BASE_URL, PRIME_TRAIN_RUNPOD_CLOUD and
    PRIME_TRAIN_RUNPOD_SPOT. Raises PermanentError that names what is missing or invalid, without repeating
    the key.
    """
    key, url = (
        key_from(environment, KEY, TITLE),
        url_from(environment, ADDRESS, BASE_URL, TITLE, without="/v2"),
    )
    cloud = environment.get(CLOUD, "").strip().upper()
    if cloud and cloud not in CLOUDS:
        raise PermanentError(
            f"{CLOUD} is {cloud[:32]!r}; set it to secure or community, or unset it to rent from both"
        )
    wants_spot = environment.get(SPOT, "").strip().lower()
    if wants_spot not in ("", "yes", "no"):
        raise PermanentError(
            f"{SPOT} is {wants_spot[:32]!r}; set it to yes to rent spot machines, too, or unset it"
        )
    return RunPodSettings(key, url, (cloud,) if cloud else CLOUDS, wants_spot == "yes")
