"""`pyrometer mcp`: the verbs for coding assistants."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.errors import ExitCode, UsageError


@click.command()
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Folder that the verbs run in; files outside of it are refused.  [default: this one]",
)
def command(*, root: Path) -> int:
    """Serve the verbs to a coding assistant over stdin and stdout (Model Context Protocol).

    check, bench, trace, compile, memory, tune, lint, rule, show and compare are its tools. Each call runs
    in its own process and returns the short answer, with any requested part of the JSON document. Named programs are run.
    """
    try:
        from pyrometer.cli.assistant import server
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise UsageError(
            "pyrometer mcp needs mcp, which is not installed; install it by pip install 'pyrometer[mcp]'"
        ) from error
    server(root.resolve()).run("stdio")
    return ExitCode.OK
