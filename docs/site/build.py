"""The documentation as a site: `python -m docs.site.build --generator PATH` lays its pages out below build/docs
and has Zensical build them strictly, so that a link or an anchor without a target ends the build.

Zensical writes the search index, llms.txt, and each page as Markdown beside its HTML.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "docs" / "site" / "zensical.toml"
LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
BUILD_S_MAX = 300
ABOUT_CHARS_MAX = 240

Section = tuple[str, Sequence[str]]
"""A title of the navigation with the pages below it, as paths in the repository."""


def sections(config: Path = CONFIG) -> list[Section]:
    """Return the navigation. A page that stands alone is a section of its own."""
    nav: list[Mapping[str, Any]] = tomllib.loads(config.read_text(encoding="utf-8"))["project"]["nav"]
    return [
        (title, [entry] if isinstance(entry, str) else [page for one in entry for page in one.values()])
        for listed in nav
        for title, entry in listed.items()
    ]


def pages(config: Path = CONFIG) -> list[str]:
    return [page for _, listed in sections(config) for page in listed]


def linked(page: Path) -> Iterator[Path]:
    """Yield what the page links to in the repository, whether it exists or not."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            yield (page.parent / target).resolve()


def stage(out: Path) -> None:
    """Lay out in `out` what Zensical builds: the pages of the navigation, and the other files that they link
    to. A page that is linked and in no navigation is left out, so that the build finds its link.
    """
    for made in ("pages", "overrides", "site"):
        shutil.rmtree(out / made, ignore_errors=True)
    for name in pages():
        files = {ROOT / name, *(path for path in linked(ROOT / name) if path.suffix != ".md")}
        for path in sorted(path for path in files if path.is_file() and path.is_relative_to(ROOT)):
            copy = out / "pages" / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    shutil.copytree(CONFIG.parent / "overrides", out / "overrides")


def about(page: Path) -> str:
    """Return what a page has sections about, for llms.txt."""
    headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return textwrap.shorten("; ".join(headings), ABOUT_CHARS_MAX, placeholder=" ...")


def with_address(config: str, url: str) -> str:
    """Return the configuration of the build: with the site's address, and its sections for llms.txt."""
    listed = [
        f"{_quoted(title)} = [{', '.join(_described(page) for page in below)}]" for title, below in sections()
    ]
    addressed = config.replace("[project]\n", f"[project]\nsite_url = {_quoted(url)}\n", 1)
    return "\n".join((addressed, "[project.plugins.llmstxt.sections]", *listed, ""))


def _described(page: str) -> str:
    return f"{{ {_quoted(page)} = {_quoted(about(ROOT / page))} }}"


def _quoted(text: str) -> str:
    """Return the text as a string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


class _Links(HTMLParser):
    """The addresses that a page asks for or leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def lost(site: Path) -> list[str]:
    """Return each link of a built page that leads to no file of the site, which Zensical looks at for pages
    alone.
    """
    found = []
    site = site.resolve()
    for page in sorted(site.rglob("*.html")):
        links = _Links()
        links.feed(page.read_text(encoding="utf-8"))
        for link in links.found:
            address = urlsplit(link)
            if address.scheme or address.netloc or not address.path or address.path.startswith("/"):
                continue
            target = (page.parent / unquote(address.path)).resolve()
            is_there = target.is_relative_to(site) and (target.is_file() or (target / "index.html").is_file())
            if not is_there and target != site.parent:  # there lie the other versions
                found.append(f"{page.relative_to(site)}: {link}")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Build the site into OUT/site. Returns 1, after the links that have no target, if there are some."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.build", description=__doc__)
    parser.add_argument("--generator", type=Path, required=True, help="the program zensical")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="folder for all of it")
    parser.add_argument(
        "--url", default="http://localhost:8000/", help="address of the site, with a / at its end"
    )
    given = parser.parse_args(words)
    stage(given.out)
    config = given.out / "zensical.toml"
    config.write_text(with_address(CONFIG.read_text(encoding="utf-8"), given.url), encoding="utf-8")
    command = [
        str(given.generator.absolute()),
        "build",
        "--clean",
        "--strict",
        "--config-file",
        "zensical.toml",
    ]
    built = subprocess.run(command, cwd=given.out, check=False, timeout=BUILD_S_MAX)
    if built.returncode:
        return 1
    missing = lost(given.out / "site")
    for one in missing:
        print(f"a link that leads to no file of the site: {one}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
