"""The list of commands in `prime-train --help`, below headings."""

from itertools import groupby
from typing import Any

from typer.core import TyperGroup


class GroupedHelp(TyperGroup):
    """Lists the commands below the headings that they were added with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, commands in groupby(self.commands.items(), key=lambda item: getattr(item[1], "rich_help_panel", None)):
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in commands])
