"""The settings as a text that can be used on any machine: with the kubeconfig in it, and in that the contents of the files it names."""

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from prime_train.adapters.pods_kubernetes.kubeconfig import embedded
from prime_train.adapters.pods_kubernetes.settings import SETTINGS, Settings
from prime_train.ports import Portable


def portable(settings: Settings, environment: Mapping[str, str]) -> Portable:
    """Return the settings. Raises PermanentError if the credential in the kubeconfig is only to be had on this machine."""
    kubeconfig = embedded(settings, environment)
    kept = settings.model_dump(mode="json", exclude_defaults=True, exclude={"kubeconfig", "context"})
    host = urlsplit(kubeconfig["clusters"][0]["cluster"]["server"]).hostname or ""
    # In one line: what masks secrets in a log masks each of their lines, such as `spot: true`.
    return Portable({SETTINGS: json.dumps({**kept, "kubeconfig": kubeconfig}, separators=(",", ":"))}, (host,))
