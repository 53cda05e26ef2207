"""Text from any source stays text: it has no formatting, links, mentions or HTML."""

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from prime_train.text.markdown import code, cut, folded, one_line, plain, table
from prime_train.text.safe import neutralized

HOSTILE = [
    "<script>alert(1)</script>",
    "</details><img src=x onerror=alert(1)>",
    "<!-- prime-train:validate -->",
    "![x](http://evil.example/x.png) [click](javascript:x)",
    "**bold** _it_ ~~gone~~ $x^2$ `code` ``more`` ```fence```",
    "a | b || c \\| d \\\\| e",
    "@everyone @acme/owners mail@example.com /@ann",
    "#1 acme/models#12 GH-7",
    "one\ntwo\r\n\r\n# three\u2028four\x00\x1b[31mfive\u202e",
    "&lt;b&gt; &#96; &amp;",
    "\\",
    "[^1] [ ] - [x]",
]
BREAK = "&#8203;"
UNESCAPED = re.compile(r"(?<!\\)(?:\\\\)*[`*\[\]<>|~$&]")


@pytest.mark.parametrize("text", HOSTILE)
def test_what_means_something_is_escaped_in_text(text: str) -> None:
    message = plain(text).replace(BREAK, "\u200b")
    assert not UNESCAPED.search(message), message
    assert not re.search(r"[@#]\w|GH-\d", message), message
    assert len(message.splitlines()) == 1
    assert message.isprintable() or "\u200b" in message


@pytest.mark.parametrize("text", HOSTILE)
def test_code_is_one_piece_that_nothing_in_it_ends(text: str) -> None:
    message = code(text)
    inner = (
        message[1:-1] if message.startswith("`") else message.removeprefix("<code>").removesuffix("</code>")
    )
    assert message in (f"`{inner}`", f"<code>{inner}</code>")
    assert not set("`|\n\r") & set(inner)
    if message.startswith("<code>"):
        assert re.fullmatch(r"(?:\w| |&#\d+;)*", inner), inner


@pytest.mark.parametrize(
    "text", ["# a heading", "- a line", "+ a line", "1. first", "2) second", "---", "===", "###### x"]
)
def test_what_would_begin_a_block_does_not(text: str) -> None:
    assert "\\" in plain(text)
    assert plain(text).replace("\\", "") == text


@pytest.mark.parametrize(
    "text",
    ["5.0 to 6.0", "-1 to 2", "#tag is fine", "step 10 of 100 (10%)", "snake_case_name", "a - b + c = d"],
)
def test_what_means_nothing_stays_as_it_is(text: str) -> None:
    assert plain(text).replace(BREAK, "") == text


@pytest.mark.parametrize(
    "text", ["https://evil.example/renew", "HTTP://evil.example", "www.evil.example", "see WWW.evil.example"]
)
def test_an_address_that_a_machine_wrote_is_no_link_in_our_comment(text: str) -> None:
    message = plain(text)
    assert not re.search(r"://|www\.", message, re.IGNORECASE), message
    assert message.replace(BREAK, "") == text


@pytest.mark.parametrize("text", ["see https://evil.example", "by @everyone, in acme/models#12", "-@.http"])
def test_what_is_printed_as_markdown_says_the_same_as_a_comment(text: str) -> None:
    """A command prints it through the output that shows characters without width as escapes."""
    assert neutralized(plain(text)) == plain(text)
    assert unescape(plain(text)).replace("\u200b", "") == text


@pytest.mark.parametrize("text", ["-__x_b'_x__", "__x__", "a __b__ c", "(_x_)", "__init__.py", "_x"])
def test_underscores_in_a_row_emphasize_nothing(text: str) -> None:
    message = MarkdownIt("commonmark").render(plain(text))
    assert "<em>" not in message
    assert "<strong>" not in message
    assert unescape(message) == f"<p>{text}</p>\n"


def test_nothing_is_reported_as_nothing() -> None:
    assert [code(text) for text in ("", " \n", "\x00")] == ["", "", ""]
    assert plain("\n") == ""


def test_a_long_text_is_cut_before_it_is_escaped() -> None:
    assert (cut("abc", 3), cut("abcd", 3), cut("a\nb c  d", 5)) == ("abc", "ab…", "a b…")
    assert not plain(cut("*" * 500, 200)).endswith("\\")
    assert one_line("a\tb\n") == "a b"


def test_tables_and_folds_are_what_github_reads() -> None:
    assert table(("a", "b"), [("1", "2")]) == ["| a | b |", "|:--|:--|", "| 1 | 2 |"]
    assert folded("more", ["text"]) == ["<details>", "<summary>more</summary>", "", "text", "", "</details>"]
