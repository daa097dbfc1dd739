"""The page of the command line, made from the command's own help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main
from source_pages import write_if_changed

from gpcert.cli.app import EXAMPLES, app


def options_table(command: Any) -> list[str]:
    """Arguments and options of a command as a table."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    rows = ["| option | meaning |", "| --- | --- |"]
    for parameter in command.get_params(context):
        argument = parameter.param_type_name == "argument"
        if getattr(parameter, "hidden", False):
            continue
        spellings = [*parameter.opts, *parameter.secondary_opts]
        names = str(parameter.name).upper() if argument else ", ".join(spellings)
        text = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
        default = parameter.get_default(context, call=False)
        shown = (
            ""
            if default in (None, False, (), []) or callable(default)
            else f" (default: `{default}`)"
        )
        rows.append(f"| `{names}` | {text}{shown} |")
    return rows


def text() -> str:
    """The whole page."""
    group = typer.main.get_command(app)
    lines = ["# The command line", "", str(group.help), "", "```bash", *EXAMPLES[1:], "```", ""]
    lines += ["Exit codes: 0 proved, 1 refuted, 2 undecided, 3 bad input, 4 a defect of gpcert."]
    for name, command in group.commands.items():
        lines += ["", f"## gpcert {name}", "", str(command.help or ""), ""]
        lines += options_table(command)
        if command.epilog:
            lines += ["", "```text", command.epilog, "```"]
    return "\n".join(lines) + "\n"


def write(path: Path) -> None:
    """Write the page."""
    write_if_changed(path, text())
