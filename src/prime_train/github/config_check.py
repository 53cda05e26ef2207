"""Check, price and explain the configs that a job of a code repository is about."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.configs.loader import LoadedConfig
from prime_train.errors import ExternalError, PermanentError, TemporaryError, UsageError
from prime_train.github.api import GitHub
from prime_train.github.changed_configs import inside, named, of_merge_group, of_pull, read_named, runs_among
from prime_train.github.comments import delete_sticky, upsert_sticky
from prime_train.github.events import Event, MergeGroup, PullRequest, Trigger
from prime_train.github.market_reader import REASON_CHARS_MAX, EarlierRuns, MarketReader
from prime_train.github.repository import content_at
from prime_train.github.runs import check_launches
from prime_train.launch.review import ConfigReview, Texts, offers_for, review
from prime_train.text.markdown import one_line

STICKY = "validate"
"""Name by which the comment with the findings is found again."""


def configs_of(
    trigger: Trigger, github: GitHub | None, environment: Mapping[str, str], *, paths: str, folder: str
) -> tuple[LoadedConfig, ...]:
    """Return the configs at `paths`, which are separated by whitespace; by default those in `folder` that the
    pull request or the merge queue changes, or all of them if the job was started by something else.
    `github`: None without a token. Raises UsageError if the paths are not valid, or the changes are not
    known.
    """
    requested = named(paths)
    if paths and not requested:
        raise UsageError(
            "paths contains only spaces", fix="write a path such as configs/demo.yaml, or leave it empty"
        )
    if requested:
        return read_named(requested, environment)
    event = trigger.event
    if isinstance(event, PullRequest | MergeGroup):
        if github is None:
            raise UsageError(
                "without a token the files that the pull request changes are unknown",
                fix="give the step a token, or paths",
            )
        if isinstance(event, MergeGroup):
            return of_merge_group(github, event, folder, environment)
        return of_pull(github, event.number, folder, environment)
    root = inside(folder)
    return read_named((root,), environment) if root.is_dir() else ()


def review_for(
    loaded: LoadedConfig,
    event: Event,
    github: GitHub | None,
    market: MarketReader,
    earlier: EarlierRuns,
    warn: Callable[[str], None],
) -> ConfigReview:
    """Review a config that defines a run, by what the `market` has for rent and `earlier` runs show. `warn`
    is called with what could not be read for it: offers, or a file on the base branch of a pull request.
    """
    assert loaded.subject is not None
    assert loaded.subject.spec is not None
    before = _before(loaded, event, github, warn)
    offers = None  # which is not a mistake in the config
    try:
        offers = offers_for(market.offered, loaded, earlier.seen, why_unread=earlier.why_unread)
    except ExternalError as error:
        warn(f"offers cannot be read: {one_line(str(error))[:REASON_CHARS_MAX]}")
    return review(loaded, offers, before=before, after=loaded.sources)


def launched_configs(trigger: Trigger, read: Sequence[LoadedConfig], *, launched: bool) -> list[str]:
    """Return the paths of the configs that define a run. `launched`: whether they are launched next; then
    UsageError is raised if the pull request affects too many.
    """
    runs = runs_among(read)
    if launched and isinstance(trigger.event, PullRequest):
        check_launches(runs)
    return runs


@dataclass(frozen=True)
class CommentResult:
    """Whether the findings are in a comment on the pull request."""

    url: str = ""
    """The comment's; empty if there is none."""
    reason: str = ""
    """Why there is none although there are findings; empty if nothing went wrong."""
    is_expected: bool = True
    """Whether the author of the pull request cannot change the reason: a fork's token, for instance, may not
    comment.
    """


def comment_on_pull(
    github: GitHub | None, trigger: Trigger, text: str, *, has_configs: bool
) -> CommentResult:
    """Create or update the comment with the findings, or delete it if the pull request has no configs (any
    more). Without a pull request nothing is done. `github`: None without a token.
    """
    event = trigger.event
    if not isinstance(event, PullRequest):
        return CommentResult()
    if github is None or event.head_repository != trigger.repository:
        return CommentResult(reason="this pull request is from a fork, or the step has no token")
    try:
        if has_configs:
            return CommentResult(upsert_sticky(github, event.number, STICKY, text).html_url)
        delete_sticky(github, event.number, STICKY)
    except PermanentError as error:
        return CommentResult(reason=str(error))
    except TemporaryError as error:
        return CommentResult(reason=str(error), is_expected=False)
    return CommentResult()


def _before(loaded: LoadedConfig, event: Event, github: GitHub | None, warn: Callable[[str], None]) -> Texts:
    """Return the contents of the config's files on the base branch, None for a file that does not exist there
    or cannot be read. Outside a pull request and a merge queue, return the contents in the working folder.
    """
    if not isinstance(event, PullRequest | MergeGroup) or github is None:
        return {file: Path(file).read_text(encoding="utf-8", errors="replace") for file in loaded.sources}
    return {file: _content(github, file, event.base, warn) for file in loaded.sources}


def _content(github: GitHub, file: str, commit: str, warn: Callable[[str], None]) -> str | None:
    try:
        return content_at(github, file, commit)
    except ExternalError as error:
        warn(f"{file}: the version on the base branch cannot be read: {error}")
        return None
