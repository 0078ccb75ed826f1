"""`pyrometer lint`: rules on source text, with fixes; imports no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pyrometer.cli.lint_flags import LintFlags
from pyrometer.errors import ExitCode

FORMATS = ("text", "concise", "full", "json", "sarif", "github", "gitlab", "junit")
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("paths", nargs=-1, type=click.UNPROCESSED, metavar="PATH... | -")
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    help="Check only these rules: codes, names or prefixes of codes.",
)
@click.option("--extend-select", multiple=True, metavar="RULES", help="Check these rules as well.")
@click.option(
    "--ignore",
    "--extend-ignore",
    multiple=True,
    metavar="RULES",
    help="Skip these rules, besides those that the settings ignore.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERNS",
    help="Skip these paths, besides those that the settings exclude.",
)
@click.option(
    "--config",
    multiple=True,
    metavar="FILE|KEY=VALUE",
    help="Read settings from this file, or set one as in TOML.",
)
@click.option("--isolated", is_flag=True, help="Ignore all settings files.")
@click.option("--stdin-filename", metavar="FILE", help="File name to assume for stdin.")
@click.option("--fix", is_flag=True, help="Apply fixes that do not change results.")
@click.option("--fix-only", is_flag=True, help="Apply fixes without reporting what is left.")
@click.option(
    "--unsafe-fixes",
    "unsafe",
    is_flag=True,
    help="With --fix or --diff: include fixes that may change results.",
)
@click.option("--diff", is_flag=True, help="Show what --fix would change, without changing it.")
@click.option(
    "--add-ignores", "reason", metavar="REASON", help="Add comments that suppress today's findings."
)
@click.option("--baseline", type=_FILE, help="Report only findings that are not in this file.")
@click.option(
    "--update-baseline", "update", is_flag=True, help="Write today's findings to the baseline file."
)
@click.option(
    "--output-format",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Output format; concise is an alias of text.",
)
@click.option("--json", "form", flag_value="json", help="The same as --output-format json.")
@click.option("--statistics", is_flag=True, help="Print how often each rule fired instead of the findings.")
@click.option("--output", "-o", type=_FILE, help="Write the findings to this file.")
@click.option(
    "--quiet", "-q", is_flag=True, help="Print findings and errors only, without summary and notes."
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("--watch", "-w", is_flag=True, help="Lint again whenever a file changes.")
@click.option("--lsp", is_flag=True, help="Serve an editor over stdin and stdout; needs pyrometer[lsp].")
def command(**flags: Any) -> int:
    """Find slow or wrong PyTorch code in files, notebooks, folders and glob patterns; - reads stdin.

    Exit code 0: nothing found; 1: findings; 2: wrong usage, or a file or rule failed. Settings are in
    [tool.pyrometer.rules] of pyproject.toml; `# pyrometer: ignore[PYR101] reason` and `# noqa: PYR101` suppress a finding.
    """
    asked = LintFlags(**flags)
    asked.refuse_conflicts()
    code = _carry_out(asked)
    return ExitCode.OK if asked.exit_zero and code == ExitCode.FOUND else code


def _carry_out(asked: LintFlags) -> int:
    from pyrometer.cli.lint_run import lint_named, lint_stdin, show_files

    if asked.lsp:
        from pyrometer.cli.lint_server import serve

        return serve(asked)
    if asked.show_files:
        return show_files(asked)
    if asked.watch:
        from pyrometer.cli.lint_watch import watch

        return watch(asked)
    return lint_stdin(asked) if asked.reads_stdin else lint_named(asked)
