"""What must not be seen in anything that leaves the machine, some of which comes while the attempt lives."""

from collections.abc import Callable, ItemsView, Iterator, Mapping

Source = Callable[[], Mapping[str, str]]


class Masked(Mapping[str, str]):
    """Values by the names they are blacked out with, as the sources have them at the moment of looking. Any thread may look."""

    def __init__(self, *sources: Source) -> None:
        self._sources = sources

    def __getitem__(self, name: str) -> str:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def items(self) -> ItemsView[str, str]:
        """All of one moment."""
        return self._now().items()

    def _now(self) -> dict[str, str]:
        return {name: value for source in self._sources for name, value in source().items()}
