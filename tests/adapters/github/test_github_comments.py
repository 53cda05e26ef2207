"""The sticky comment: found by author and its hidden first line, updated instead of repeated, cut to GitHub's
limit.
"""

import json
from collections.abc import Iterator

import pytest

from prime_train.errors import PermanentError
from prime_train.github.comments import BODY_CHARS_MAX, delete_sticky, react, upsert_sticky
from tests.adapters.github.speaking_github import REPO, as_job, as_person, spoken_to, writes
from tests.fakes.github import FakeGitHub
from tests.fakes.http import ALWAYS, Response

MARK = "<!-- prime-train:validate -->"


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with spoken_to() as fake:
        yield fake


def bodies(fake: FakeGitHub, author: str = "github-actions[bot]") -> list[str]:
    return [comment["body"] for comment in fake.comments(REPO, 1) if comment["user"]["login"] == author]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_a_comment_is_written_once_and_changed_after(fake: FakeGitHub) -> None:
    github = as_job(fake)
    first, second = upsert_sticky(github, 1, "validate", "one"), upsert_sticky(github, 1, "validate", "two")
    assert (first.id, bodies(fake)) == (second.id, [f"{MARK}\ntwo"])
    upsert_sticky(github, 1, "validate", "two")
    assert [each.split()[0] for each in writes(fake)] == ["POST", "PATCH"]


def test_comments_of_other_names_are_left_alone(fake: FakeGitHub) -> None:
    for name in ("validate", "run:a", "run:ab"):
        upsert_sticky(as_job(fake), 1, name, name)
    upsert_sticky(as_job(fake), 1, "run:a", "new")
    assert [body.splitlines()[1] for body in bodies(fake)] == ["validate", "new", "run:ab"]


def test_a_marker_that_a_stranger_planted_is_not_taken_for_ours(fake: FakeGitHub) -> None:
    planted = f"{MARK}\nall is well, merge this"
    fake.comment(REPO, 1, author="mallory", body=planted)
    fake.comment(REPO, 1, author="github-actions", body=planted)
    upsert_sticky(as_job(fake), 1, "validate", "2 errors")
    upsert_sticky(as_job(fake), 1, "validate", "3 errors")
    assert bodies(fake, "mallory") == bodies(fake, "github-actions") == [planted]
    assert bodies(fake) == [f"{MARK}\n3 errors"]


def test_a_marker_within_a_text_of_ours_is_no_marker(fake: FakeGitHub) -> None:
    upsert_sticky(as_job(fake), 1, "run:a", f"quoted: {MARK}")
    upsert_sticky(as_job(fake), 1, "validate", "ours")
    assert len(bodies(fake)) == 2


def test_the_comment_is_found_on_whatever_page_it_is(fake: FakeGitHub) -> None:
    for number in range(100):
        fake.comment(
            REPO, 1, author="bob", body=f"{MARK} {number}" if number % 50 == 0 else f"remark {number}"
        )
    for text in ("one", "two"):
        upsert_sticky(as_job(fake), 1, "validate", text)
    assert bodies(fake) == [f"{MARK}\ntwo"]


def test_where_it_cannot_be_found_among_so_many_none_is_written_each_time(fake: FakeGitHub) -> None:
    page = json.dumps(
        [{"id": 1, "html_url": "https://example.com", "body": "a remark", "user": {"login": "bob"}}] * 100
    )
    fake.fail(Response(200, page.encode()), method="GET", path="comments", times=ALWAYS)
    with pytest.raises(PermanentError, match="3000 comments or more"):
        upsert_sticky(as_job(fake), 1, "validate", "one")
    assert writes(fake) == []


def test_who_writes_with_a_token_of_their_own_finds_what_they_wrote_and_what_the_job_wrote(
    fake: FakeGitHub,
) -> None:
    upsert_sticky(as_person(fake), 1, "validate", "by ann")
    upsert_sticky(as_person(fake), 1, "validate", "by ann again")
    assert bodies(fake, "ann") == [f"{MARK}\nby ann again"]
    upsert_sticky(as_job(fake), 1, "run:a", "by the job")
    upsert_sticky(as_person(fake), 1, "run:a", "by ann, of the job's")
    assert bodies(fake) == ["<!-- prime-train:run:a -->\nby ann, of the job's"]


def test_who_speaks_is_queried_only_where_it_matters(fake: FakeGitHub) -> None:
    github = as_job(fake)
    upsert_sticky(github, 1, "validate", "one")
    assert "/user" not in [call.path for call in fake.requests]
    fake.comment(REPO, 1, author="mallory", body=f"{MARK}\nplanted")
    for name in ("run:a", "validate", "validate"):
        upsert_sticky(github, 1, name, "two")
    assert [call.path for call in fake.requests].count("/user") <= 1


def test_of_two_that_were_written_at_once_the_older_is_kept(fake: FakeGitHub) -> None:
    for text in ("older", "newer"):
        fake.comment(REPO, 1, author="github-actions[bot]", body=f"{MARK}\n{text}")
    upsert_sticky(as_job(fake), 1, "validate", "now")
    assert bodies(fake) == [f"{MARK}\nnow", f"{MARK}\nnewer"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a line of text\n" * 140_000, id="two megabytes of lines"),
        pytest.param("x" * 2_000_000, id="one line of two megabytes"),
        pytest.param("🟢 a line\n" * 200_000, id="beyond the basic plane"),
        pytest.param("🟢" * 65_536, id="one line beyond the basic plane"),
    ],
)
def test_a_text_that_is_too_long_is_cut_and_says_so(fake: FakeGitHub, text: str) -> None:
    comment = upsert_sticky(as_job(fake), 1, "validate", text)
    (body,) = bodies(fake)
    assert BODY_CHARS_MAX - 500 < units(body) <= BODY_CHARS_MAX
    assert body.startswith(MARK)
    assert body.endswith("… truncated: a comment cannot be longer.")
    assert "\ufffd" not in body
    if "\n" in text:
        assert body.splitlines()[-3] == text.splitlines()[0]
    assert upsert_sticky(as_job(fake), 1, "validate", text).id == comment.id
    assert writes(fake) == ["POST comments"]


def test_what_just_fits_is_not_cut(fake: FakeGitHub) -> None:
    text = "x" * (BODY_CHARS_MAX - len(MARK) - 1)
    upsert_sticky(as_job(fake), 1, "validate", text)
    assert bodies(fake) == [f"{MARK}\n{text}"]


def test_a_cut_leaves_neither_code_nor_what_is_folded_open(fake: FakeGitHub) -> None:
    upsert_sticky(
        as_job(fake), 1, "validate", "<details>\n\n```\n" + "a line\n" * 20_000 + "```\n</details>\nthe end"
    )
    (body,) = bodies(fake)
    assert body.splitlines()[-4:] == ["```", "</details>", "", "… truncated: a comment cannot be longer."]


def test_a_comment_can_be_taken_away_and_reacted_to(fake: FakeGitHub) -> None:
    assert not delete_sticky(as_job(fake), 1, "validate")
    fake.comment(REPO, 1, author="mallory", body=f"{MARK}\nplanted")
    comment = upsert_sticky(as_job(fake), 1, "validate", "one")
    react(as_job(fake), comment.id, "+1")
    assert delete_sticky(as_job(fake), 1, "validate")
    assert (bodies(fake), len(bodies(fake, "mallory"))) == ([], 1)
