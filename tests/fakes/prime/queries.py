"""What may follow the question mark, page by page and slice by slice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tests.fakes.prime.accounts import ApiKey
from tests.fakes.prime.rows import GpuRow

Json = Mapping[str, object]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Asked:
    """A request whose path is known; `found` is the id in the path."""

    query: Mapping[str, Sequence[str]]
    body: bytes
    key: ApiKey
    found: str = ""


class Query(BaseModel):
    """Unknown parameters are let pass; a parameter that is no list counts as it was given first."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Page(Query):
    page: int = Field(1, ge=1)
    page_size: int = Field(100, ge=1, le=100)

    def of(self, items: Sequence[BaseModel]) -> Json:
        first = (self.page - 1) * self.page_size
        return {"items": [item.model_dump() for item in items[first : first + self.page_size]], "totalCount": len(items)}


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
        return all(asked in (None, offered) for asked, offered in pairs) and (not self.regions or row.region in self.regions)


class DiskPage(Page):
    regions: list[str] = []
    data_center_id: str | None = None
    cloud_id: str | None = None


class Slice(Query):
    offset: int = Field(0, ge=0)
    limit: int = Field(100, ge=1, le=100)

    def of(self, items: Sequence[Item], told: Callable[[Item], Json]) -> dict[str, object]:
        data = [told(item) for item in items[self.offset : self.offset + self.limit]]
        return {"total_count": len(items), "offset": self.offset, "limit": self.limit, "data": data}


class PodSlice(Slice):
    """No most of `limit` is described."""

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


Wanted = TypeVar("Wanted", bound=Query)


def read(asked: Asked, kind: type[Wanted]) -> Wanted:
    """ValidationError where the query is not understood."""
    lists = {name for name, known in kind.model_fields.items() if known.annotation == list[str]}
    return kind.model_validate({name: list(values) if name in lists else values[0] for name, values in asked.query.items()})
