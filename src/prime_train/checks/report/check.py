"""Read and check configs and print the findings, for `validate` and `lint`."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_train.checks.report import terminal as findings
from prime_train.checks.report.formats import Format
from prime_train.checks.validate import Extend, validate
from prime_train.exit_codes import Exit
from prime_train.terminal.output import print_command


def check(
    paths: Sequence[Path],
    form: Format,
    *,
    fast: bool = False,
    extend: Extend | None = None,
    verbose: bool = False,
) -> Exit:
    """Check the configs in `paths`, print the findings and return the exit code. With `fast`, no source lines
    are printed; with `verbose`, what is fine is listed as well. See `validate` for `fast` and `extend`.
    """
    done = validate(paths, os.environ, fast=fast, extend=extend)
    # Only the requested format is imported, to start faster.
    match form:
        case Format.TEXT:
            if done.findings:
                findings.print_refusal(done.findings, {} if fast else done.sources)
            faulty = {finding.file for finding in done.findings}
            for file in done.files:
                if file not in faulty:
                    print(f"{file}: ok")
            if not done.files:
                print("no configs were found", file=sys.stderr)
        case Format.JSON:
            findings.print_json(done.findings)
        case Format.SARIF:
            from prime_train.checks.report.sarif import sarif

            print(json.dumps(sarif(done.findings), indent=2))
        case Format.GITHUB:
            from prime_train.checks.report.github import github

            if done.findings:
                print_command(github(done.findings))
        case Format.MARKDOWN:
            from prime_train.checks.report.markdown import markdown

            print(markdown(done.findings, len(done.files)), end="")
    if verbose:
        from prime_train.planning.fine import fine_points

        for loaded in done.read:
            files = {loaded.file, *loaded.sources}
            print(f"{loaded.file}: checked and fine")
            for point in fine_points(loaded, [finding for finding in done.findings if finding.file in files]):
                print(f"  {point.name:<18} {point.text}")
    return done.exit
