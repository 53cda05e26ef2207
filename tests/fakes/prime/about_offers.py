"""Answers to what is asked about offers."""

from tests.fakes.prime.queries import Asked, DiskPage, GpuPage, Json, read
from tests.fakes.prime.rows import summary
from tests.fakes.prime.world import World


def gpus(world: World, asked: Asked) -> Json:
    page = read(asked, GpuPage)
    if world.terms.empty_listings > 0:
        world.terms.empty_listings -= 1
        return page.of([])
    disks = [world.disk(disk_id) for disk_id in page.disks]
    told = page.of([row for row in world.rows if page.wants(row) and all(disk.fits(row) for disk in disks)])
    if world.rows_next is not None:
        world.rows, world.rows_next = world.rows_next, None
    return told


def multi_node(world: World, asked: Asked) -> Json:
    page = read(asked, GpuPage)
    return page.of([row for row in world.multi_node_rows if page.wants(row)])


def disk_offers(world: World, asked: Asked) -> Json:
    page = read(asked, DiskPage)
    rows = [row for row in world.disk_rows if page.data_center_id in (None, row.dataCenter) and page.cloud_id in (None, row.cloudId)]
    return page.of([row for row in rows if not page.regions or row.region in page.regions])


def gpu_summary(world: World, asked: Asked) -> Json:
    return summary(world.rows)


def multi_node_summary(world: World, asked: Asked) -> Json:
    return summary(world.multi_node_rows)
