"""Refusals of a create call that do not tell whether the machine was taken or the request is wrong."""

from collections.abc import Iterable

from prime_train.core.offers import Offer, fits
from prime_train.core.spec import HardwareSpec
from prime_train.ports import ExternalError, NoCapacity, PermanentError


class MaybeOurFault(NoCapacity):
    """A machine was refused for a reason that may be a lack of capacity as well as a mistake in the request: nothing was created."""


class RefusedOffers:
    """The offers that were refused so since a machine was rented last."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def error(self, offer_id: str, refusal: str, every: Iterable[Offer], hardware: HardwareSpec) -> ExternalError:
        """Return the error for a refusal. One machine that is refused may be taken; if all of `every` that fit are refused, with nothing
        rented in between, there is probably a mistake in the request."""
        self._refused.add(offer_id)
        fitting = {offer.offer_id for offer in every if fits(offer, hardware) is None}
        if len(fitting) > 1 and fitting <= self._refused:
            return PermanentError(
                f"{offer_id}: {refusal}; all {len(fitting)} machines that fit were refused, so the request itself may be at fault"
            )
        return NoCapacity(refusal)

    def forget(self) -> None:
        """A machine was rented, so requests are right."""
        self._refused.clear()
