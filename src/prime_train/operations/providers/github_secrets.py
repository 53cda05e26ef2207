"""The secrets of a repository on GitHub, by GitHub's own tool `gh`, which the user has logged in with.

A key is stored only in environments that have a rule about who may use it: otherwise whoever may push a branch could print the key in a job
of that branch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prime_train.adapters.github.gh import SECRET_BYTES_MAX, gh, store_secret
from prime_train.core.advice import Advice, Call, Operation
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.operations.providers.portable import carried

ENVIRONMENTS = ("gpu", "gpu-watch")
"""The environments whose jobs rent machines and look after them."""


@dataclass(frozen=True)
class InGitHub:
    """The environments of the repository that `gh` finds for the current folder. `environment`: that of the process."""

    environment: Mapping[str, str]

    def keep(self, values: Mapping[str, str]) -> Sequence[Advice]:
        values = carried(values, self.environment).values
        large = [name for name, value in values.items() if len(value.encode()) > SECRET_BYTES_MAX]
        if large:
            raise UsageError(f"{large[0]} has more than {SECRET_BYTES_MAX >> 10} KiB, GitHub's limit for a secret; nothing was stored")
        guarded = [name for name in ENVIRONMENTS if self._is_guarded(name)]
        if not guarded:
            message = f"neither of the environments {' and '.join(ENVIRONMENTS)} of the repository has a rule about who may use its secrets"
            fix = Advice("create them with such rules first: ", Call(Operation.SET_UP_GITHUB), "; nothing was stored")
            raise UsageError(message, fix=fix, code=Exit.EXTERNAL_REFUSED)
        for environment in guarded:
            for name, value in values.items():
                store_secret(name, value, environment=environment)
        done = [Advice(f"{', '.join(values)} is a secret of the environment {name} now") for name in guarded]
        left = [name for name in ENVIRONMENTS if name not in guarded]
        return [*done, *(Advice(f"the environment {name} has no rule about who may use its secrets, so it got none") for name in left)]

    def forget(self, names: Sequence[str]) -> Sequence[Advice]:
        deleted = []
        for environment in ENVIRONMENTS:
            there = {line.split()[0] for line in gh("secret", "list", "--env", environment).splitlines() if line.split()}
            for name in (name for name in names if name in there):
                gh("secret", "delete", name, "--env", environment)
                deleted.append(Advice(f"deleted {name} from the environment {environment}"))
        return deleted or [Advice(f"neither environment has {' or '.join(names)}")]

    def _is_guarded(self, environment: str) -> bool:
        path = f"repos/{{owner}}/{{repo}}/environments/{environment}"
        try:
            return gh("api", path, "--jq", ".protection_rules | length").strip() not in ("", "0")
        except UsageError as error:
            if "404" in str(error):
                return False
            raise
