"""`prime-train validate FILES...`: every mistake in the configs."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.cli.exits import Exit


def validate(
    files: Annotated[list[Path], typer.Argument(help="Configs, such as configs/demo.yaml.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of findings.")] = False,
) -> Exit:
    """Check configs: all mistakes at once."""
    from prime_train.adapters.config_yaml import read_config
    from prime_train.cli import findings
    from prime_train.core.finding import has_errors

    configs = [read_config(file) for file in files]
    found = tuple(finding for config in configs for finding in config.findings)
    if as_json:
        findings.print_json(found)
    else:
        findings.print_findings(found, {config.file: config.source for config in configs})
        if found:
            findings.summary(found, len({finding.file for finding in found}))
        for config in configs:
            if not config.findings:
                typer.echo(f"{config.file}: ok")
    return Exit.FINDINGS if has_errors(found) else Exit.OK
