"""Where a provider's credentials are kept: in the home that `serve` reads, in the secret of a deployment to
AWS, or in GitHub's secrets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.serving import Serving
from prime_train.aws.deployment import Deployment
from prime_train.aws.doctor import master_key
from prime_train.aws.settings import refuse_too_large
from prime_train.errors import UsageError
from prime_train.providers import stored_keys
from prime_train.providers.portable import Carried, carried
from prime_train.providers.ssh_client.keys import derived_public_key


class KeyLocation(Protocol):
    """A place for credentials. Both methods return what was done in words, a line each."""

    def keep(self, values: Mapping[str, str]) -> Sequence[Advice]:
        """Store the credentials, by the names of their variables."""

    def forget(self, names: Sequence[str]) -> Sequence[Advice]:
        """Delete the credentials with these names."""


@dataclass(frozen=True)
class InHome:
    """The home of a control plane on this machine. `environment`: that of the process, whose variables
    win.
    """

    root: Path
    serving: Serving
    environment: Mapping[str, str]

    def keep(self, values: Mapping[str, str]) -> Sequence[Advice]:
        stored_keys.keep(self.root, values)
        done = [
            Advice(f"stored in {stored_keys.file_of(self.root, name)}, which only you can read (mode 0600)")
            for name in values
        ]
        if self.serving.elsewhere:
            where = (
                f"the control plane runs elsewhere, at {self.serving.elsewhere}, and does not read this home"
            )
            return [
                *done,
                Advice(
                    f"{where}: commands that look for machines from here use the key; store it there, too"
                ),
            ]
        return [*done, self._then()]

    def forget(self, names: Sequence[str]) -> Sequence[Advice]:
        deleted = [Advice(f"deleted {path}") for path in stored_keys.forget(self.root, names)]
        set_still = [name for name in names if stored_keys.has_value(name, self.environment)]
        left = [
            Advice(f"{name} is still set in this environment, which wins: unset it, too")
            for name in set_still
        ]
        return [
            *(deleted or [Advice("nothing was stored here")]),
            *left,
            *([self._then()] if deleted else []),
        ]

    def _then(self) -> Advice:
        if self.serving.now is not None:
            return Advice(
                "a control plane serves this home now: restart it, because it reads credentials when it "
                "starts; one in the background is ended by ",
                Call(Operation.DOWN),
            )
        return Advice()


@dataclass(frozen=True)
class InAws:
    """The secret of a deployment to AWS, from which its functions read. `environment`: that of the
    process.
    """

    deployed: Deployment
    environment: Mapping[str, str]

    def keep(self, values: Mapping[str, str]) -> Sequence[Advice]:
        found = carried(values, self.environment)

        def changed_to(before: dict[str, object]) -> dict[str, object]:
            after = {**before, **found.values}
            refuse_too_large(after)
            return after

        changed = self.deployed.account.change_secret(self._secret(), changed_to)
        what = (
            f"the secret has new values of {', '.join(changed)}"
            if changed
            else "the secret had these values already"
        )
        return [
            Advice(f"{what}; the functions use them within five minutes"),
            *out_of_reach(found.private),
            *self._login(found),
        ]

    def forget(self, names: Sequence[str]) -> Sequence[Advice]:
        changed = self.deployed.account.change_secret(
            self._secret(),
            lambda before: {name: value for name, value in before.items() if name not in names},
        )
        if not changed:
            return [Advice(f"the secret has no {' or '.join(names)}")]
        return [
            Advice(
                f"deleted {', '.join(changed)} from the secret; the functions notice it within five minutes"
            )
        ]

    def _login(self, found: Carried) -> Sequence[Advice]:
        """Return the line that lets the functions in on machines to which they log in."""
        if not found.logs_in:
            return []
        line = derived_public_key(bytes.fromhex(master_key(self.deployed)))
        return [Advice(f"append this line to ~/.ssh/authorized_keys on each machine: {line}")]

    def _secret(self) -> str:
        outputs = self.deployed.stack.outputs()
        if "Secret" not in outputs:
            name = self.deployed.stack.name
            fix = Advice(
                self.deployed.call(Operation.DEPLOY),
                " creates it; ",
                Option(SettingAdvice.STACK),
                " names another one",
            )
            raise UsageError(f"there is no stack {name} in region {self.deployed.account.region}", fix=fix)
        return outputs["Secret"]


def out_of_reach(hosts: Sequence[str]) -> Sequence[Advice]:
    """Return a warning about hosts that only a network of their own reaches."""
    named = f"{', '.join(hosts[:3])}{' and others are' if len(hosts) > 3 else ' are' if len(hosts) > 1 else ' is'}"
    why = (
        "in a network of its own, which the functions on AWS do not reach; give an address that the internet "
        "reaches"
    )
    return [Advice(f"warning: {named} {why}")] if hosts else []
