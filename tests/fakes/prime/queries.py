"""The query parameters, for pages and for slices."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tests.fakes.http import Json, Request
from tests.fakes.prime.rows import GpuRow

Item = TypeVar("Item")


class Query(BaseModel):
    """Query parameters. Unknown ones are ignored; of a parameter that is not a list, the first value
    counts.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)


class Page(Query):
    page: int = Field(1, ge=1)
    page_size: int = Field(100, ge=1, le=100)

    def of(self, items: Sequence[BaseModel]) -> Json:
        first = (self.page - 1) * self.page_size
        return {
            "items": [item.model_dump() for item in items[first : first + self.page_size]],
            "totalCount": len(items),
        }


class GpuPage(Page):
    regions: list[str] = []
    gpu_count: int | None = None
    gpu_type: str | None = None
    socket: str | None = None
    security: str | None = None
    data_center_id: str | None = None
    cloud_id: str | None = None
    disks: list[str] = []

    def wants(self, row: GpuRow) -> bool:
        pairs = (
            (self.gpu_count, row.gpuCount),
            (self.gpu_type, row.gpuType),
            (self.socket, row.socket),
            (self.security, row.security),
            (self.data_center_id, row.dataCenter),
            (self.cloud_id, row.cloudId),
        )
        return all(wanted in (None, offered) for wanted, offered in pairs) and (
            not self.regions or row.region in self.regions
        )


class DiskPage(Page):
    regions: list[str] = []
    data_center_id: str | None = None
    cloud_id: str | None = None


class Slice(Query):
    offset: int = Field(0, ge=0)
    limit: int = Field(100, ge=1, le=100)

    def of(self, items: Sequence[Item], row: Callable[[Item], Json]) -> dict[str, object]:
        data = [row(item) for item in items[self.offset : self.offset + self.limit]]
        return {"total_count": len(items), "offset": self.offset, "limit": self.limit, "data": data}


class PodSlice(Slice):
    """A slice of the list of pods. No maximum of `limit` is documented."""

    limit: int = Field(100, ge=1)


class HistorySlice(PodSlice):
    sort_by: str = Field("terminatedAt", pattern="^(terminatedAt|createdAt)$")
    sort_order: str = Field("desc", pattern="^(asc|desc)$")


class WalletSlice(Query):
    limit: int = Field(20, ge=1, le=100)
    offset: int = Field(0, ge=0)
    teamId: str | None = None


class StatusQuery(Query):
    pod_ids: list[str]


class LogQuery(Query):
    tail: int = Field(100, ge=1)


Kind = TypeVar("Kind", bound=Query)


def read(request: Request, kind: type[Kind]) -> Kind:
    """Parse the query. Raises ValidationError if it is invalid."""
    lists = {name for name, known in kind.model_fields.items() if known.annotation == list[str]}
    return kind.model_validate(
        {name: list(values) if name in lists else values[0] for name, values in request.query_lists.items()}
    )
