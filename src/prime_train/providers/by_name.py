"""The port `Pods` over several providers: a control plane may rent from one, and train on its own machine as
well.

Pod ids are unique across providers: the id of a pod that is not local begins with its provider's name and a
slash.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from prime_train.advice import Advice, Call, Operation
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.providers.kinds import LOCAL, PROVIDERS, advice_for, allowed_providers
from prime_train.providers.port import Account, PartlyListed, Pods
from prime_train.runs.funds import Bill, Funds
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

T = TypeVar("T")

log = logging.getLogger(__name__)


class PodsByProvider:
    """Several providers as one `Pods`. `providers` are keyed by `Offer.provider`; `defaults` are used if a
    run names none.
    """

    def __init__(self, providers: Mapping[str, Pods], defaults: Sequence[str]) -> None:
        self._providers, self._defaults = dict(providers), tuple(defaults)
        self._unlisted: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._providers)

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return the offers of all providers that the run names, or of the default ones. A provider that does
        not answer, or is not set up here, only leaves its own offers out. Raises what the first one raised if
        none answers.

        A provider that could not list its pods last is not asked while there are others: waiting for it would
        delay them, and a machine that it rents could not be found if the response to the create call is lost.
        """
        names = allowed_providers(hardware) or self._defaults
        answering = [name for name in names if name not in self._unlisted]
        if answering and len(answering) < len(names):
            log.warning(
                "the offers of %s are left out: its machines could not be listed",
                " and ".join(self._unlisted.intersection(names)),
            )
        return offers_of({name: partial(self._offers, name) for name in answering or names}, hardware)

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        return _with_id(offer.provider, self._of(offer.provider).create(name, offer, hardware))

    def list(self) -> Sequence[Pod]:
        """Return the pods of all providers, queried side by side. Raises PartlyListed if some could not be
        listed, because a partial list would look complete, and what the only one raised if there is only one.
        """
        listed: list[Pod] = []
        failed: dict[str, ExternalError] = {}
        for name, answer in _side_by_side(
            {name: pods.list for name, pods in self._providers.items()}
        ).items():
            try:
                listed += [_with_id(name, pod) for pod in answer()]
            except ExternalError as error:
                failed[name] = error
        self._unlisted = frozenset(failed)
        if failed and len(self._providers) == 1:
            raise next(iter(failed.values()))
        if failed:
            raise PartlyListed(tuple(listed), {name: str(error) for name, error in failed.items()})
        return listed

    def get(self, pod_id: str) -> Pod | None:
        name, own_id = provider_of(pod_id)
        pod = self._seen(name).get(own_id)
        return _with_id(name, pod) if pod is not None else None

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        name, own_id = provider_of(pod.pod_id)
        self._seen(name).put_agent(replace(pod, pod_id=own_id), ticket)

    def terminate(self, pod_id: str) -> None:
        name, own_id = provider_of(pod_id)
        self._seen(name).terminate(own_id)

    def _offers(self, name: str, hardware: HardwareSpec) -> Sequence[Offer]:
        return self._of(name).offers(hardware)

    def _of(self, name: str) -> Pods:
        if name not in self._providers:
            add = (
                Advice(Call(Operation.ADD_PROVIDER, name), " asks for what it needs and stores it")
                if name in PROVIDERS
                else ""
            )
            raise PermanentError(f"provider {name} is not set up here; {advice_for(name)}", fix=add)
        return self._providers[name]

    def _seen(self, name: str) -> Pods:
        """Return the provider of existing pods. Raises TemporaryError if it is not set up here, which proves
        nothing about its pods.
        """
        if name not in self._providers:
            raise TemporaryError(f"provider {name} cannot be queried from here; {advice_for(name)}")
        return self._providers[name]


def offers_of(
    providers: Mapping[str, Callable[[HardwareSpec], Sequence[Offer]]], hardware: HardwareSpec
) -> list[Offer]:
    """Return the offers of several providers, queried side by side. One that fails leaves its own out, with a
    warning in the log; raises what the first one raised if all fail.
    """
    if len(providers) == 1:
        return [offer for offers in providers.values() for offer in offers(hardware)]
    found: list[Offer] = []
    failed: list[ExternalError] = []
    for name, answer in _side_by_side(
        {name: partial(offers, hardware) for name, offers in providers.items()}
    ).items():
        try:
            found += answer()
        except ExternalError as error:
            log.warning("the offers of %s are left out: %s", name, error)
            failed.append(error)
    if failed and len(failed) == len(providers):
        raise failed[0]
    return found


def _side_by_side(calls: Mapping[str, Callable[[], T]]) -> dict[str, Callable[[], T]]:
    """Make the calls at the same time, and return functions that return their results, or raise what they
    raised.
    """
    with ThreadPoolExecutor(max(1, len(calls))) as pool:
        asked = {name: pool.submit(call) for name, call in calls.items()}
    return {name: answer.result for name, answer in asked.items()}


class AccountOfOne:
    """The account of one of several providers, with the pod ids on its bills prefixed as in
    `PodsByProvider`.
    """

    def __init__(self, account: Account) -> None:
        self._account = account

    @property
    def provider(self) -> str:
        return self._account.provider

    def funds(self) -> Funds | None:
        return self._account.funds()

    def bills(self) -> Sequence[Bill]:
        return [replace(bill, pod_id=_id(self.provider, bill.pod_id)) for bill in self._account.bills()]


def provider_of(pod_id: str) -> tuple[str, str]:
    """Return the provider's name and the pod's id at that provider."""
    name, slash, own_id = pod_id.partition("/")
    return (name, own_id) if slash else (LOCAL, pod_id)


def _with_id(name: str, pod: Pod) -> Pod:
    return replace(pod, pod_id=_id(name, pod.pod_id))


def _id(name: str, own_id: str) -> str:
    return own_id if name == LOCAL else f"{name}/{own_id}"
