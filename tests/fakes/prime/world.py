"""The state of the fake Prime, and its course in time: pods start, cost money and end.

Not thread-safe: use it while the fake's lock is held. Nothing happens by itself, only in `settle`, in the
order in which it would have happened since the last call.
"""

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fakes.clock import Clock
from tests.fakes.prime.accounts import API_KEY, ApiKey, SshKeys, Team, Wallet
from tests.fakes.prime.bodies import CreateDisk, CreatePod
from tests.fakes.prime.disks import Disk, row_for
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.pods import HOST, NEVER_S, End, Plan, Pod
from tests.fakes.prime.refusals import Refused
from tests.fakes.prime.rows import EXAMPLES, DiskRow, GpuRow
from tests.fakes.prime.ssh_wire import Cuts
from tests.fakes.prime.terms import Terms, choose

EVENTS_MAX = 100_000
HOUR_S = 3600.0
NOTHING_USD = 1e-9
"""A balance below this counts as 0, because sums of fractions are not exact."""


class World:
    """The state. `with_machines`: active pods are processes that answer SSH; without, the API only describes
    them.
    """

    def __init__(self, home: Path, clock: Clock, *, with_machines: bool) -> None:
        self.clock = clock
        self.rows: list[GpuRow] = list(EXAMPLES)
        self.multi_node_rows: list[GpuRow] = []
        self.disk_rows: list[DiskRow] = [
            DiskRow(),
            DiskRow(provider="datacrunch", dataCenter="FIN-01", country="FI", isMultinode=False),
        ]
        self.rows_next: list[GpuRow] | None = None
        self.plan = Plan()
        self.terms = Terms()
        self.api_keys: dict[str, ApiKey] = {API_KEY: ApiKey()}
        self.ssh_keys = SshKeys()
        self.teams: dict[str, Team] = {}
        self.wallets: dict[str | None, Wallet] = {None: Wallet("wallet-1")}
        self.pods: dict[str, Pod] = {}
        self.disks: dict[str, Disk] = {}
        self.cuts = Cuts()
        self._home = home
        self._with_machines = with_machines
        self._settled_s = clock.now_s()

    # --------------------------------------------------------------------------------------------------------
    # what is asked

    def wallet(self, team_id: str | None) -> Wallet:
        if team_id is not None and team_id not in self.teams:
            raise Refused(403, f"You are not a member of team {team_id}")
        return self.wallets[team_id]

    def create_pod(self, order: CreatePod) -> Pod:
        wallet = self.wallet(order.team_id)
        chosen = choose(
            order,
            self.rows,
            wallet,
            self.terms,
            living=sum(pod.end in (None, End.ERROR) for pod in self.pods.values()),
        )
        public_key = self.ssh_keys.wanted(order.pod.sshKeyId)
        disks = [self.disk(disk_id) for disk_id in order.disks or []]
        if not all(disk.fits(chosen.row) for disk in disks):
            raise Refused(400, "The disk is in another data center")
        pod_id, plan = secrets.token_hex(16), self.plan
        for disk in disks:
            disk.attach(pod_id)
        usd_per_hour = chosen.usd_per_hour if plan.usd_per_hour is None else plan.usd_per_hour
        pod = Pod(
            pod_id, order, chosen.row, plan, public_key, self.clock.now_s(), usd_per_hour, wallet.wallet_id
        )
        pod.disks = [disk.attached_json() for disk in disks]
        self.pods[pod_id] = pod
        return pod

    def pod(self, pod_id: str) -> Pod:
        """Return a pod that can still be queried."""
        pod = self.pods.get(pod_id)
        if pod is None or not self.is_known(pod):
            raise Refused(404, "Pod not found")
        return pod

    def is_known(self, pod: Pod) -> bool:
        return pod.is_known(self.clock.now_s(), forgets_deleted=self.terms.forgets_deleted)

    def listed_s(self) -> float:
        """Return the time as of which the list is reported; it may lag."""
        return self.clock.now_s() - self.terms.list_lag_s

    def listed(self) -> Sequence[Pod]:
        at_s = self.listed_s()
        return [
            pod
            for pod in self.pods.values()
            if at_s >= pod.created_s and pod.is_listed(at_s) and not pod.hidden
        ]

    def ended(self) -> Sequence[Pod]:
        return [pod for pod in self.pods.values() if pod.end is not None and pod.end.is_over]

    def delete_pod(self, pod_id: str) -> Pod:
        """Delete a pod; one that is over already is left unchanged."""
        pod = self.pod(pod_id)
        if pod.end in (None, End.ERROR):
            self.end_pod(pod, End.DELETED, "deleted by its user")
        return pod

    def end_pod(self, pod: Pod, end: End, why: str) -> None:
        """End a pod; when this returns, all its processes are dead and its folder is deleted."""
        pod.ended_s, pod.end, pod.ended_why = min(pod.ended_s, self.clock.now_s()), end, why
        machine, pod.machine = pod.machine, None
        if machine is not None:
            machine.destroy()
        for disk in self.disks.values():
            if pod.pod_id in disk.pods:
                disk.pods.remove(pod.pod_id)

    def revive(self, pod: Pod) -> None:
        """Let a pod that has ended live again, as if it had only been out of sight."""
        pod.ended_s, pod.end, pod.ended_why = NEVER_S, None, ""

    def disk(self, disk_id: str) -> Disk:
        if disk_id not in self.disks:
            raise Refused(404, "Disk not found")
        return self.disks[disk_id]

    def create_disk(self, order: CreateDisk) -> Disk:
        wallet, row = self.wallet(order.team_id), row_for(order, self.disk_rows)
        disk_id = secrets.token_hex(12)
        folder = self._home / "disks" / disk_id
        folder.mkdir(parents=True)
        made = Disk(
            disk_id,
            order,
            row,
            order.disk.name or f"disk-{disk_id[:6]}",
            folder,
            wallet.wallet_id,
            self.clock.now_s(),
        )
        self.disks[disk_id] = made
        return made

    # --------------------------------------------------------------------------------------------------------
    # time goes

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        now_s = self.clock.now_s()
        for _ in range(EVENTS_MAX):
            at_s = min((moment for moment in self._moments() if moment > self._settled_s), default=now_s)
            at_s = min(at_s, now_s)
            self._bill(at_s - self._settled_s)
            self._settled_s = at_s
            self._happen(at_s)
            if at_s >= now_s:
                return
        raise AssertionError(f"more than {EVENTS_MAX} events at once")

    def _moments(self) -> Iterator[float]:
        """Return the times at which something will happen, if nothing else does before."""
        for pod in self.pods.values():
            if pod.end is None:
                yield from (pod.active_s, pod.preempted_s)
        for wallet in self.wallets.values():
            rate = sum(price for _, price in self._costs(wallet))
            if rate > 0 and wallet.balance_usd > NOTHING_USD:
                yield self._settled_s + wallet.balance_usd / rate * HOUR_S

    def _bill(self, passed_s: float) -> None:
        for wallet in self.wallets.values():
            for costing, usd_per_hour in self._costs(wallet):
                usd = usd_per_hour * passed_s / HOUR_S
                costing.billed_usd += usd
                wallet.balance_usd = max(0.0, wallet.balance_usd - usd)

    def _costs(self, wallet: Wallet) -> Iterator[tuple[Pod | Disk, float]]:
        """Return what takes money from the wallet now, and its cost per hour."""
        for pod in self.pods.values():
            if pod.wallet_id == wallet.wallet_id and pod.is_active(self._settled_s):
                yield pod, pod.usd_per_hour
        for disk in self.disks.values():
            if disk.wallet_id == wallet.wallet_id:
                yield disk, disk.usd_per_hour

    def _happen(self, at_s: float) -> None:
        empty = {wallet.wallet_id for wallet in self.wallets.values() if wallet.balance_usd <= NOTHING_USD}
        for pod in [pod for pod in self.pods.values() if pod.end is None]:
            if pod.wallet_id in empty:
                pod.ended_s = at_s
                self.end_pod(pod, End.DELETED, "the wallet is empty")
            elif at_s >= pod.preempted_s:
                pod.ended_s = at_s
                self.end_pod(pod, pod.plan.preempted_as, "preempted")
            elif at_s >= pod.active_s and pod.machine is None and self._with_machines:
                self._boot(pod)

    def _boot(self, pod: Pod) -> None:
        machine = Machine(
            self._home / "pods" / pod.pod_id, pod.pod_id, pod.public_key, self.cuts, pod.plan.image
        )
        pod.machine, pod.address = machine, f"{machine.user}@{HOST} -p {machine.port}"
        for disk in self.disks.values():
            if pod.pod_id in disk.pods:
                disk.mount(machine.disk)
