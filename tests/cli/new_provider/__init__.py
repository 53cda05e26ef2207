"""A provider that prime-train does not have, behind a rental API. Everything about it is in this package, its
server (`server`) included, and `ROW` is its row in the registry. Its machines get their agents by its API
instead of SSH.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Unpack

from pydantic import Field

from prime_train.errors import NoCapacity, NoFunds
from prime_train.http import HttpResponse
from prime_train.providers.kinds import ProviderKind
from prime_train.providers.port import SshAddress
from prime_train.providers.rental import parsing
from prime_train.providers.rental.account_check import AccountWords
from prime_train.providers.rental.client import CREATE_READ_S, RentalClient
from prime_train.providers.rental.pods import Plane, RentalPods
from prime_train.providers.rental.provider import RentalProvider
from prime_train.providers.rental.reasons import CreateRefusal, Refusals, short
from prime_train.providers.rental.ssh_key import ssh_address
from prime_train.providers.rental.user_settings import key_from, url_from
from prime_train.runs.funds import Bill, Funds
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

NAME, TITLE, KEY, URL = "meadow", "the meadow", "MEADOW_KEY", "MEADOW_URL"
POD_ID, OFFER_ID = "m-[0-9]{1,9}", "[a-z]{1,20}"
STATUSES = {"sown": PodStatus.PENDING, "grown": PodStatus.ACTIVE}
MACHINES = "/v1/machines"


class Kind(parsing.ResponsePart):
    id: str = Field(pattern=f"^{OFFER_ID}$")
    gpu: str = Field(pattern="^[A-Z0-9_]{1,20}$")
    usd: parsing.Usd
    spot: bool = False
    gpu_gb: int = 0
    disk_gib: int = 0
    machine: str = Field("", pattern="^[a-z0-9-]{0,20}$")
    free: int = 0


class Machine(parsing.ResponsePart):
    id: str = Field(pattern=f"^{POD_ID}$")
    name: parsing.TextOrNone = None
    state: parsing.TextOrNone = None
    usd: parsing.Figure = None
    since: parsing.TextOrNone = None


class Wallet(parsing.ResponsePart):
    id: str = Field(min_length=1, max_length=64)
    usd: parsing.Usd


def _error_in(answer: HttpResponse) -> str:
    content = answer.content()
    return short(str(content.get("error", ""))) if isinstance(content, dict) else ""


class MeadowClient(RentalClient[Machine]):
    refusals = Refusals(
        TITLE,
        URL,
        {401: f"the meadow does not know this key; look at {KEY}"},
        _error_in,
        says_unknown=lambda answer: _error_in(answer) == "unknown",
        creation=(CreateRefusal(NoFunds, (402,)), CreateRefusal(NoCapacity, (409,))),
    )

    def kinds(self) -> list[Kind]:
        return parsing.readable(Kind, parsing.items_in(self.get("/v1/kinds"), "kinds"), TITLE)

    def wallet(self) -> Wallet:
        answer = self.get("/v1/account")
        return parsing.read_answer(Wallet, answer)

    def rent(self, name: str, kind: str) -> Machine:
        answer = self._created(
            self._ask("POST", MACHINES, body={"name": name, "kind": kind}, read_s=CREATE_READ_S)
        )
        return parsing.read_answer(Machine, answer)

    def pods(self) -> list[Machine]:
        answer = self.get(MACHINES)
        return parsing.read_list(Machine, answer, "machines")

    def pod(self, pod_id: str) -> Machine | None:
        answer = self._ask("GET", f"{MACHINES}/{pod_id}")
        return parsing.read_answer(Machine, answer) if self._is_known(answer) else None

    def delete(self, pod_id: str) -> bool:
        return self._is_known(self._ask("DELETE", f"{MACHINES}/{pod_id}"))

    def start_agent(self, connection: SshAddress, ticket: Ticket) -> None:
        self._succeeded(
            self._ask("PUT", f"{MACHINES}/{connection.pod_id}", body=ticket.model_dump(mode="json"))
        )


class MeadowPods(RentalPods[Kind, Machine]):
    example_id = "clover"
    _client: MeadowClient

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, Kind]:
        return {kind.id: kind for kind in self._client.kinds() if kind.free > 0}

    def _offer(self, offer_id: str, machine: Kind, hardware: HardwareSpec) -> Offer:
        known = machine.model_dump(include={"spot", "gpu", "gpu_gb", "disk_gib", "machine"})
        return Offer(NAME, offer_id, machine.usd, gpu_count=1, **known)

    def _rent(self, name: str, machine: Kind, hardware: HardwareSpec, most_usd: float) -> Machine:
        return self._client.rent(name, machine.id)

    @staticmethod
    def _pod_of(rented: Machine) -> Pod:
        status = STATUSES.get(rented.state or "", PodStatus.UNKNOWN)
        return Pod(
            rented.id,
            rented.name or "",
            status,
            parsing.second(rented.since),
            parsing.believable_usd(rented.usd),
        )

    @staticmethod
    def _address_of(rented: Machine) -> SshAddress | None:
        return ssh_address(rented.id, "shepherd", f"{rented.id}.meadow.example", 22)

    @staticmethod
    def _is_pod_id(text: str) -> bool:
        return re.fullmatch(POD_ID, text) is not None

    @staticmethod
    def _is_offer_id(text: str) -> bool:
        return re.fullmatch(OFFER_ID, text) is not None


class MeadowProvider(RentalProvider[MeadowPods]):
    name = provider = NAME
    words = AccountWords(TITLE, "MEADOW_ACCOUNT")

    def account(self) -> "MeadowProvider":
        return self

    def funds(self) -> Funds | None:
        return Funds(NAME, self._client.wallet().usd, self._pods.burn_usd_per_hour())

    def bills(self) -> Sequence[Bill]:
        return ()

    def _make(self, public_key: str, **plane: Unpack[Plane]) -> MeadowPods:
        return MeadowPods(self._client, self._client.start_agent, **plane)

    def _account_names(self) -> Iterable[str]:
        yield self._client.wallet().id

    @cached_property
    def _client(self) -> MeadowClient:
        environment = self._context.environment
        url = url_from(environment, URL, "https://meadow.example", TITLE, without="/v1")
        key = key_from(environment, KEY, TITLE)
        return MeadowClient(TITLE, url, key, witness=self._context.witness)


ROW = ProviderKind(
    f"{__name__}:MeadowProvider",
    TITLE,
    credentials=(KEY,),
    advice=f"set {KEY}",
    documentation="https://meadow.example",
)
