"""Whether the configs of a pull request meet what they require of results: read from the checks that the
control plane has set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_train.configs.loader import LoadedConfig
from prime_train.errors import ExternalError
from prime_train.github.api import GitHub
from prime_train.github.commit_statuses import (
    commit_status,
    commit_statuses,
    requirements_context,
    send_commit_status,
    set_commit_status,
)
from prime_train.github.events import MergeGroup, PullRequest, Trigger
from prime_train.github.repository import pull_of
from prime_train.outputs.results.comparison_texts import RequirementCheck
from prime_train.spec.finding import Finding
from prime_train.spec.requirements import Met
from prime_train.spec.tree import SourcePosition, place_of

NOT_MET = "PT024"
CONFIGS_MAX = 50
"""Maximum number of configs that a change leaves as they are and whose checks are set for it: GitHub limits
how much a minute may write.
"""
UNCHANGED = RequirementCheck("success", "nothing to check: the config is not changed")
NO_RUN = RequirementCheck(
    "pending", "no run of this commit has ended: launch one, for example by the label train"
)


@dataclass(frozen=True)
class ConfigCheck:
    """The check of a config with requirements, for the newest commit of its pull request."""

    loaded: LoadedConfig
    check: RequirementCheck

    @property
    def finding(self) -> Finding | None:
        """Return the finding that fails the job, if a requirement is not met."""
        if self.check.state not in ("failure", "error"):
            return None
        place = self._place()
        fix = (
            "change what makes the results worse, or the requirement; the comment about the run compares the "
            "numbers"
        )
        message = f"the newest run of this commit: {self.check.text}"
        return Finding(NOT_MET, message, place.file or self.loaded.file, place.line, place.column, fix=fix)

    def _place(self) -> SourcePosition:
        """Return the position of the requirement that the check names, or of all of them."""
        subject = self.loaded.subject
        assert subject is not None
        assert subject.spec is not None
        assert subject.config is not None
        named = (
            number
            for number, line in enumerate(subject.spec.require)
            if self.check.text.startswith(f"{Met.NOT_MET}: {line}")
        )
        number = next(named, None)
        return place_of(
            subject.config.root,
            ("require",) if number is None else ("require", number),
            on_key=number is None,
        )


def config_checks(
    trigger: Trigger, github: GitHub | None, configs: Sequence[LoadedConfig], note: Callable[[str], None]
) -> list[ConfigCheck]:
    """Return the checks of the configs that require something. If no run of the commit has set a check yet,
    it is set to pending, so that the pull request does not seem to pass. A merge queue's commit gets the
    check of the pull request that it merges, because no run can have it. `note` is called if GitHub refuses.
    Empty outside pull requests and merge queues. A job that launches the configs must not ask: what an
    earlier run resulted in does not prevent another one.
    """
    event = trigger.event
    if github is None or not isinstance(event, PullRequest | MergeGroup):
        return []
    return [ConfigCheck(one, _check(trigger, github, event, one.file, note)) for one in _requiring(configs)]


def pass_unchanged(
    trigger: Trigger, github: GitHub | None, configs: Sequence[LoadedConfig], note: Callable[[str], None]
) -> None:
    """Set the checks of configs that the pull request or the merge queue does not change, unless they have
    been set. A check that the repository requires and nobody sets would keep the change waiting for ever.
    `note` is called if GitHub refuses. Nothing is done outside pull requests and merge queues, and for a
    fork's, whose jobs may not set checks.
    """
    event, wanted = trigger.event, [requirements_context(one.file) for one in _requiring(configs)]
    if (
        github is None
        or not wanted
        or not isinstance(event, PullRequest | MergeGroup)
        or not _may_set(trigger, event)
    ):
        return
    try:
        known = commit_statuses(github, event.head)
        missing = [context for context in wanted if context not in known]
        for context in missing[:CONFIGS_MAX]:
            send_commit_status(github, event.head, context, UNCHANGED.state, UNCHANGED.text)
        if len(missing) > CONFIGS_MAX:
            note(
                f"{len(missing)} configs that do not change require something, and only {CONFIGS_MAX} of "
                "their checks were set"
            )
    except ExternalError as error:
        note(f"the checks of configs that do not change could not be read or set: {error}")


def _requiring(configs: Sequence[LoadedConfig]) -> list[LoadedConfig]:
    return [
        one
        for one in configs
        if one.subject is not None and one.subject.spec is not None and one.subject.spec.require
    ]


def _may_set(trigger: Trigger, event: PullRequest | MergeGroup) -> bool:
    return isinstance(event, MergeGroup) or event.head_repository == trigger.repository


def _check(
    trigger: Trigger,
    github: GitHub,
    event: PullRequest | MergeGroup,
    config: str,
    note: Callable[[str], None],
) -> RequirementCheck:
    context = requirements_context(config)
    try:
        found = commit_status(github, event.head, context)
        if found is not None:
            return RequirementCheck(found.state, found.description or "")
        check = _of_merged(github, event, context) if isinstance(event, MergeGroup) else NO_RUN
        if _may_set(trigger, event):
            set_commit_status(github, event.head, context, check.state, check.text)
        return check
    except ExternalError as error:
        note(f"{config}: whether its requirements are met could not be read or set: {error}")
    return NO_RUN


def _of_merged(github: GitHub, event: MergeGroup, context: str) -> RequirementCheck:
    """Return the check of the pull request that was added to the queue last, which is the one that the
    queue's commit merges.
    """
    found = (
        commit_status(github, pull_of(github, event.pull).head.sha, context)
        if event.pull is not None
        else None
    )
    return RequirementCheck(found.state, found.description or "") if found is not None else NO_RUN
