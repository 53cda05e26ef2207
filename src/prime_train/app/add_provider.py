"""Adds a provider: its credentials are checked first, and stored only if the provider accepts them."""

from collections.abc import Mapping, Sequence

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.errors import ExternalError, PermanentError, TemporaryError, UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.look import Look, look
from prime_train.providers.portable import file_named
from prime_train.providers.setup import known
from prime_train.providers.stored_keys import BYTES_MAX
from prime_train.runs.store import Store
from prime_train.runs.unreadable import may_have_machine
from prime_train.spec.spec import HardwareSpec


def credentials_of(name: str) -> Sequence[str]:
    """Return the names of the variables with the provider's credentials. Raises UsageError if it is unknown,
    or has none.
    """
    kind = known(name)
    if not kind.credentials:
        raise UsageError(
            f"provider {name} is {kind.title} and needs no credentials",
            fix="name it in hardware.provider of a config",
        )
    return kind.credentials


def checked_value(name: str, text: str) -> str:
    """Return the credential without white space around it; the path of a file as an absolute one, which is
    right in every folder. Raises UsageError if it cannot be one; its text is not repeated.
    """
    value = text.strip()
    if not value:
        raise UsageError(f"no value was given for {name}, so nothing was stored")
    if len(value.encode()) > BYTES_MAX:
        raise UsageError(
            f"the value given for {name} is larger than {BYTES_MAX >> 10} KiB, so nothing was stored"
        )
    if any(not char.isprintable() and char not in "\n\t" for char in value):
        raise UsageError(
            f"the value given for {name} has control characters, so nothing was stored", fix="copy it again"
        )
    if value.startswith((f"{name}=", "export ")):
        raise UsageError(
            f"the value given for {name} is an assignment, so nothing was stored",
            fix=f"give only what follows {name}=",
        )
    path = file_named(value)
    return str(path) if path is not None else value


def try_credentials(
    name: str, values: Mapping[str, str], environment: Mapping[str, str], hardware: HardwareSpec
) -> Look:
    """Return what the provider shows to these credentials, beside what the environment sets. Raises
    UsageError if it refuses them, and TemporaryError if they could not be checked.
    """
    title = known(name).title
    try:
        return look(name, {**environment, **values}, hardware)
    except PermanentError as error:
        message = (
            f"{title} does not accept what was given as {' and '.join(values)}, so nothing "
            "was "
            f"stored: {error}"
        )
        raise UsageError(message, fix=_page(name), code=Exit.EXTERNAL_REFUSED) from None
    except ExternalError as error:
        unchecked = Call(Operation.ADD_PROVIDER, name, (Option(SettingAdvice.UNCHECKED),))
        fix = Advice("try again later, or store it unchecked: ", unchecked)
        raise TemporaryError(
            f"{' and '.join(values)} could not be checked, so nothing was stored: {error}", fix=fix
        ) from None


def in_use(store: Store | None, name: str) -> list[str]:
    """Return the runs that have, or may have, a machine of this provider, which nobody could look after
    without its credentials.
    """
    if store is None:
        return []
    unreadable = may_have_machine(store.unreadable(), {lease.run_id for lease in store.lease_statuses()})
    return unreadable + [
        run.run_id
        for run in store.list_runs()
        if any(attempt.ended_s is None and attempt.offer.provider == name for attempt in run.attempts)
    ]


def _page(name: str) -> str:
    page = known(name).documentation
    return f"check it, and enter it again; {page}" if page else "check it, and enter it again"
