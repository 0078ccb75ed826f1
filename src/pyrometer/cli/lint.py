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
    "--select", multiple=True, metavar="RULES", help="Only these: codes, names, beginnings of codes."
)
@click.option("--extend-select", multiple=True, metavar="RULES", help="These as well.")
@click.option(
    "--ignore",
    "--extend-ignore",
    multiple=True,
    metavar="RULES",
    help="Not these, nor what the settings ignore.",
)
@click.option(
    "--exclude", multiple=True, metavar="PATTERNS", help="Not these paths, nor what the settings exclude."
)
@click.option(
    "--config",
    multiple=True,
    metavar="FILE|KEY=VALUE",
    help="Settings of this file; or one setting, as in TOML.",
)
@click.option("--isolated", is_flag=True, help="Read no file of settings.")
@click.option("--stdin-filename", metavar="FILE", help="The name of the text on stdin.")
@click.option("--fix", is_flag=True, help="Apply the fixes that change no result.")
@click.option("--fix-only", is_flag=True, help="Apply them, and tell nothing of what is left.")
@click.option("--unsafe-fixes", "unsafe", is_flag=True, help="With --fix or --diff: all other fixes as well.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option(
    "--add-ignores", "reason", metavar="REASON", help="Write comments that ignore what is found now."
)
@click.option("--baseline", type=_FILE, help="Tell only what this file does not know.")
@click.option("--update-baseline", "update", is_flag=True, help="Write what is found now to the baseline.")
@click.option(
    "--output-format",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Form of the findings; concise is another name of text.",
)
@click.option("--json", "form", flag_value="json", help="The same as --output-format json.")
@click.option("--statistics", is_flag=True, help="How often each rule fired, instead of the findings.")
@click.option("--output", "-o", type=_FILE, help="Write the findings to this file.")
@click.option("--quiet", "-q", is_flag=True, help="Findings and errors only: no summary, no notes.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings.")
@click.option("--show-files", is_flag=True, help="List the files that would be looked at.")
@click.option("--watch", "-w", is_flag=True, help="Lint again whenever a file changes.")
@click.option("--lsp", is_flag=True, help="Serve an editor over stdin and stdout; needs pyrometer[lsp].")
def command(**flags: Any) -> int:
    """Find what makes PyTorch code slow or wrong in its text: files, notebooks, folders, patterns; - reads stdin.

    Exit code 0: nothing found; 1: findings; 2: a wrong call, or a file or rule that failed. Settings stand in
    [tool.pyrometer.rules] of pyproject.toml; `# pyrometer: ignore[PYR101] reason` and `# noqa: PYR101` ignore a finding.
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
