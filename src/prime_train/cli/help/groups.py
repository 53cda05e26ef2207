"""The groups in which `prime-train --help` lists the commands."""

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

GROUPS: Mapping[str, Sequence[str]] = {
    "Runs": ("run", "status", "logs", "diagnose", "page", "profile", "ssh", "stop", "resume", "rm"),
    "Configs": ("init", "validate", "lint", "rules", "schema", "config"),
    "Estimates": ("memory", "cost", "find", "models", "verify-model"),
    "Checkpoints": ("checkpoints",),
    "Control plane": ("serve", "watch", "dashboard", "key", "deploy", "doctor", "destroy"),
    "Other": ("demo", "gha"),
}


class GroupedHelp(TyperGroup):
    """Lists the commands group by group. A test checks that every command is in a group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = {name: self.commands[name] for name in self.list_commands(ctx) if not self.commands[name].hidden}
        width = formatter.width - 6 - max(map(len, shown))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, shown[name].get_short_help_str(width)) for name in names if name in shown])
