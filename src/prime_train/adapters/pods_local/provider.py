"""The port `Provider` on this machine."""

from prime_train.adapters.pods_local import LocalPods
from prime_train.ports import Provider, ProviderContext

FOLDER = "pods"


class LocalProvider(Provider):
    """Machines that are folders and processes of this machine."""

    def __init__(self, context: ProviderContext) -> None:
        self._pods = LocalPods(context.root / FOLDER)

    def pods(self) -> LocalPods:
        return self._pods
