"""Answers to what is asked about keys, disks, money and people."""

from tests.fakes.prime.clock import iso
from tests.fakes.prime.orders import ChangeKey, CreateDisk, CreateKey, RenameDisk
from tests.fakes.prime.queries import Asked, Json, Slice, WalletSlice, read
from tests.fakes.prime.world import World


def list_keys(world: World, asked: Asked) -> Json:
    return read(asked, Slice).of(world.ssh_keys.all(), lambda key: key.json())


def create_key(world: World, asked: Asked) -> Json:
    wanted = CreateKey.model_validate_json(asked.body)
    return world.ssh_keys.add(wanted.name, wanted.publicKey, world.clock.now_s()).json()


def change_key(world: World, asked: Asked) -> Json:
    ChangeKey.model_validate_json(asked.body)
    return world.ssh_keys.make_primary(asked.found).json()


def delete_key(world: World, asked: Asked) -> Json:
    world.ssh_keys.remove(asked.found)
    return {"status": "deleted"}


def list_disks(world: World, asked: Asked) -> Json:
    now_s = world.clock.now_s()
    return read(asked, Slice).of(list(world.disks.values()), lambda disk: disk.json(now_s)) | {"status": "ok"}


def create_disk(world: World, asked: Asked) -> Json:
    return world.create_disk(CreateDisk.model_validate_json(asked.body)).json(world.clock.now_s())


def get_disk(world: World, asked: Asked) -> Json:
    return world.disk(asked.found).json(world.clock.now_s())


def rename_disk(world: World, asked: Asked) -> Json:
    disk = world.disk(asked.found)
    disk.name = RenameDisk.model_validate_json(asked.body).name
    return disk.json(world.clock.now_s())


def delete_disk(world: World, asked: Asked) -> Json:
    world.disk(asked.found).delete()
    del world.disks[asked.found]
    return {"status": "TERMINATED"}


def wallet(world: World, asked: Asked) -> Json:
    wanted = read(asked, WalletSlice)
    of, now = world.wallet(wanted.teamId), iso(world.clock.now_s())
    billed = [(pod.created_s, pod.billed_usd, "Instance", pod.pod_id) for pod in world.pods.values() if pod.wallet_id == of.wallet_id]
    billed += [(disk.created_s, disk.billed_usd, "Disk", disk.disk_id) for disk in world.disks.values() if disk.wallet_id == of.wallet_id]
    rows = [
        {
            "id": f"bill-{resource_id}",
            "created_at": iso(made_s),
            "updated_at": now,
            "last_billed_at": now,
            "amount_usd": round(usd, 6),
            "currency": "USD",
            "resource_type": kind,
            "resource_id": resource_id,
        }
        for made_s, usd, kind, resource_id in billed
        if usd > 0
    ]
    known: dict[str, object] = {"wallet_id": of.wallet_id, "team_id": wanted.teamId, "balance_usd": round(of.balance_usd, 6)}
    return known | {"currency": "USD", "total_billings": len(rows), "recent_billings": rows[wanted.offset : wanted.offset + wanted.limit]}


def whoami(world: World, asked: Asked) -> Json:
    return asked.key.whoami()


def team_members(world: World, asked: Asked) -> Json:
    """Whoever has a key is of every team."""
    world.wallet(asked.found)
    joined = {"role": "MEMBER", "joinedAt": iso(world.clock.now_s())}
    people = dict.fromkeys(key.user_id for key in world.api_keys.values())
    return {"data": [{"userId": one, "userName": one, "userEmail": f"{one}@example.com", **joined} for one in people]}


def teams(world: World, asked: Asked) -> Json:
    now_s = world.clock.now_s()
    return read(asked, Slice).of(list(world.teams.values()), lambda team: team.json(now_s))
