"""Values to redact from everything that leaves the machine; some of them change during the attempt."""

from collections.abc import Callable, ItemsView, Iterator, Mapping

Source = Callable[[], Mapping[str, str]]


class SecretsToRedact(Mapping[str, str]):
    """Values to redact, keyed by the names that replace them, read from the sources at each access. Thread-safe."""

    def __init__(self, *sources: Source) -> None:
        self._sources = sources

    def __getitem__(self, name: str) -> str:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def items(self) -> ItemsView[str, str]:
        """Return the names and current values of everything to redact."""
        return self._now().items()

    def _now(self) -> dict[str, str]:
        return {name: value for source in self._sources for name, value in source().items()}
