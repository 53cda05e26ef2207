"""Whether the configs of a pull request meet what they require of results: read from the checks that the control plane has set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_train.adapters.github import GitHub, commit_status, requirements_context, set_commit_status
from prime_train.adapters.github.events import PullRequest, Trigger
from prime_train.configs.loaded import LoadedConfig
from prime_train.core.config_tree import SourcePosition, place_of
from prime_train.core.finding import Finding
from prime_train.core.results.requirements import Met
from prime_train.ports import ExternalError
from prime_train.reports.comparison import Check

NOT_MET = "PT024"
NO_RUN = Check("pending", "no run of this commit has ended: launch one, for example by the label train")


@dataclass(frozen=True)
class ConfigCheck:
    """The check of a config with requirements, for the newest commit of its pull request."""

    loaded: LoadedConfig
    check: Check

    @property
    def finding(self) -> Finding | None:
        """Return the finding that fails the job, if a requirement is not met."""
        if self.check.state not in ("failure", "error"):
            return None
        place = self._place()
        fix = "change what makes the results worse, or the requirement; the comment about the run compares the numbers"
        message = f"the newest run of this commit: {self.check.text}"
        return Finding(NOT_MET, message, place.file or self.loaded.file, place.line, place.column, fix=fix)

    def _place(self) -> SourcePosition:
        """Return the position of the requirement that the check names, or of all of them."""
        subject = self.loaded.subject
        assert subject is not None
        assert subject.spec is not None
        assert subject.config is not None
        named = (number for number, line in enumerate(subject.spec.require) if self.check.text.startswith(f"{Met.NOT_MET}: {line}"))
        number = next(named, None)
        return place_of(subject.config.root, ("require",) if number is None else ("require", number), on_key=number is None)


def config_checks(
    trigger: Trigger, github: GitHub | None, configs: Sequence[LoadedConfig], note: Callable[[str], None]
) -> list[ConfigCheck]:
    """Return the checks of the configs that require something. If no run of the commit has set a check yet, it is set to pending, so that
    the pull request does not seem to pass. `note` is called if GitHub refuses. Empty outside pull requests. A job that launches the configs
    must not ask: what an earlier run resulted in does not prevent another one."""
    event = trigger.event
    if github is None or not isinstance(event, PullRequest):
        return []
    wanted = [one for one in configs if one.subject is not None and one.subject.spec is not None and one.subject.spec.require]
    return [ConfigCheck(one, _check(trigger, github, event, one.file, note)) for one in wanted]


def _check(trigger: Trigger, github: GitHub, event: PullRequest, config: str, note: Callable[[str], None]) -> Check:
    context = requirements_context(config)
    try:
        found = commit_status(github, event.head, context)
        if found is not None:
            return Check(found.state, found.description or "")
        if event.head_repository == trigger.repository:
            set_commit_status(github, event.head, context, NO_RUN.state, NO_RUN.text)
    except ExternalError as error:
        note(f"{config}: whether its requirements are met could not be read or set: {error}")
    return NO_RUN
