"""Access to the control plane from a job, which may run on a machine that is gone afterwards."""

from collections.abc import Mapping

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.environment import CREDENTIALS, HOME, MASTER, STORE
from prime_train.errors import UsageError
from prime_train.github.oidc import token_of_job
from prime_train.providers.configured import rents
from prime_train.runs.launch_key import LAUNCH_KEY
from prime_train.stores.launch_key_remote import launch_key_for
from prime_train.text.invocations import command


def job_home(environment: Mapping[str, str]) -> Home:
    """Return the home that the environment names. Raises UsageError if its state would be lost together with
    the job's machine.
    """
    if environment.get("RUNNER_ENVIRONMENT") == "github-hosted" and not environment.get(STORE):
        lost = (
            "a run that is stored on this runner is lost when the job ends, but its machine is paid for "
            "until someone finds it"
        )
        parts = (Call(Operation.SERVE), ", ", Call(Operation.SHOW_KEY))
        raise UsageError(
            f"{STORE} is not set: {lost}", fix=Advice("set url to that of a control plane (", *parts, ")")
        )
    found = Home.of(_with_launch_key(environment))
    if not found.elsewhere and not environment.get(HOME):
        fix = f"set url and master-key; or, on your own runner, set {HOME} to a persistent folder"
        raise UsageError(f"neither {STORE} nor {HOME} is set", fix=fix)
    return found


def unwatched(home: Home) -> str:
    """Return in words that nobody may be there who rents machines and ends them: the control plane has no
    watcher beside it, and this job no provider's credentials. Empty if somebody is.
    """
    if not home.elsewhere or home.about.watches or rents(home.environment):
        return ""
    making = command(Call(Operation.SET_UP_GITHUB, options=(Option(SettingAdvice.SECRET, CREDENTIALS),)))
    return (
        "no watcher runs beside the control plane, and this job has no provider's credentials: unless "
        "another watcher has them, nobody rents machines or ends them. Serve the control plane with its "
        "watcher, or store all credentials as "
        f"one secret: {making}"
    )


def _with_launch_key(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with a launch key for this job, if it has no other key and GitHub vouches for
    it.
    """
    url = environment.get(STORE, "").rstrip("/")
    if not url.startswith("http") or environment.get(MASTER) or environment.get(LAUNCH_KEY):
        return environment
    token = token_of_job(environment, url)
    return {**environment, LAUNCH_KEY: launch_key_for(url, token)} if token else environment
