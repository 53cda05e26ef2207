"""The providers' credentials as a secret of a repository on GitHub, by GitHub's own tool `gh`, which the user
has logged in with.

It is stored only in environments that have a rule about who may use it: otherwise whoever may push a branch
could print it in a job of that branch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.environment import CREDENTIALS
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.gh import SECRET_BYTES_MAX, gh, store_secret
from prime_train.providers.portable import carried

ENVIRONMENTS = ("gpu", "gpu-watch")
"""The environments whose jobs rent machines and look after them."""
STORE_ALL = Call(
    Operation.SET_UP_GITHUB, options=(Option(SettingAdvice.SECRET, CREDENTIALS), Option(SettingAdvice.FORCE))
)
ALL = Advice("to store those of all providers that are set up here: ", STORE_ALL)


@dataclass(frozen=True)
class InGitHub:
    """The environments of the repository that `gh` finds for the current folder. `environment`: that of the
    process.
    """

    environment: Mapping[str, str]

    def keep(self, values: Mapping[str, str]) -> Sequence[Advice]:
        """Store the credentials as the one secret. Raises UsageError if there is one already: what is in it
        cannot be read, and may be another provider's.
        """
        value = json.dumps(dict(carried(values, self.environment).values))
        if len(value.encode()) > SECRET_BYTES_MAX:
            raise UsageError(
                f"{', '.join(values)} has more than {SECRET_BYTES_MAX >> 10} KiB, GitHub's limit for a "
                "secret; nothing was stored"
            )
        guarded = [name for name in ENVIRONMENTS if self._is_guarded(name)]
        if not guarded:
            message = (
                f"neither of the environments {' and '.join(ENVIRONMENTS)} of the repository has "
                "a rule about who may use its secrets"
            )
            fix = Advice(
                "create them with such rules first: ", Call(Operation.SET_UP_GITHUB), "; nothing was stored"
            )
            raise UsageError(message, fix=fix, code=Exit.EXTERNAL_REFUSED)
        if any(CREDENTIALS in self._secrets(name) for name in guarded):
            raise UsageError(
                f"there is a secret {CREDENTIALS} already, with credentials that cannot be read back; "
                "nothing was stored",
                fix=ALL,
            )
        for environment in guarded:
            store_secret(CREDENTIALS, value, environment=environment)
        done = [
            Advice(f"{CREDENTIALS}, a secret of the environment {name}, has {', '.join(values)} now")
            for name in guarded
        ]
        left = [name for name in ENVIRONMENTS if name not in guarded]
        return [
            *done,
            *(
                Advice(f"the environment {name} has no rule about who may use its secrets, so it got none")
                for name in left
            ),
        ]

    def forget(self, names: Sequence[str]) -> Sequence[Advice]:
        """Delete secrets of these names, which workflows of earlier versions have read."""
        done = []
        for environment in ENVIRONMENTS:
            there = self._secrets(environment)
            for name in (name for name in names if name in there):
                gh("secret", "delete", name, "--env", environment)
                done.append(Advice(f"deleted {name} from the environment {environment}"))
            if CREDENTIALS in there:
                done.append(
                    Advice(
                        f"{CREDENTIALS} of the environment {environment} may have it, too, and cannot be "
                        "read back; ",
                        *ALL.parts,
                    )
                )
        return done or [Advice(f"neither environment has {' or '.join(names)}")]

    def _secrets(self, environment: str) -> set[str]:
        return {
            line.split()[0]
            for line in gh("secret", "list", "--env", environment).splitlines()
            if line.split()
        }

    def _is_guarded(self, environment: str) -> bool:
        path = f"repos/{{owner}}/{{repo}}/environments/{environment}"
        try:
            return gh("api", path, "--jq", ".protection_rules | length").strip() not in ("", "0")
        except UsageError as error:
            if "404" in str(error):
                return False
            raise
