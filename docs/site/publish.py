"""Versions of the site beside each other: `python -m docs.site.publish BUILT PUBLISHED VERSION` puts a built
site into the folder of all published ones.

versions.json has the form that mike made, which the theme's list of versions reads. Zensical's own answer, a
fork of mike, is in no package index, so nothing could pin it by its hash.
"""

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

NEWEST = "latest"
TO_THE_NEWEST = f"""\
<!doctype html>
<meta charset="utf-8">
<title>prime-train</title>
<meta http-equiv="refresh" content="0; url={NEWEST}/">
<a href="{NEWEST}/">prime-train</a>
"""


def publish(built: Path, published: Path, version: str) -> None:
    """Put the site of a version, such as 0.2.0, beside the others, in place of an earlier one of the same
    version. `latest`, which links from elsewhere should name, is a copy of the highest version.

    Raises ValueError for a version of another form.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"the version is {version!r}; give one such as 0.2.0")
    _replace(published / version, built)
    versions = sorted(
        (path.name for path in published.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", path.name)),
        key=lambda name: [int(number) for number in name.split(".")],
        reverse=True,
    )
    _replace(published / NEWEST, published / versions[0])
    listed = [
        {"version": name, "title": name, "aliases": [NEWEST] if name == versions[0] else []}
        for name in versions
    ]
    (published / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (published / "index.html").write_text(TO_THE_NEWEST, encoding="utf-8")
    for name in ("llms.txt", "llms-full.txt", "404.html"):  # looked for at the root of a site only
        shutil.copyfile(published / NEWEST / name, published / name)


def _replace(folder: Path, by: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(by, folder)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.site.publish", description=__doc__)
    parser.add_argument("built", type=Path, help="the site of one version, as make docs builds it")
    parser.add_argument("published", type=Path, help="folder of all versions")
    parser.add_argument("version", help="such as 0.2.0")
    given = parser.parse_args(words)
    publish(given.built, given.published, given.version)


if __name__ == "__main__":
    main()
