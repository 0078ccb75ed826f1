"""`pyrometer lint`: rules on source text, with fixes; imports no torch."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.cli.lint_run import Changes, Known, Shape, lint_named, lint_stdin
from pyrometer.errors import ExitCode, UsageError

STDIN = "-"
FORMATS = ("text", "full", "json", "sarif", "github")


@click.command()
@click.argument("paths", nargs=-1, type=click.UNPROCESSED, metavar="PATH... | -")
@click.option(
    "--select", multiple=True, metavar="RULES", help="Only these: codes, names, beginnings of codes."
)
@click.option("--ignore", multiple=True, metavar="RULES", help="All but these.")
@click.option("--fix", is_flag=True, help="Apply the fixes that change no result.")
@click.option("--unsafe-fixes", "unsafe", is_flag=True, help="With --fix or --diff: all other fixes as well.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option(
    "--add-ignores", "reason", metavar="REASON", help="Write comments that ignore what is found now."
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Tell only what this file does not know.",
)
@click.option("--update-baseline", "update", is_flag=True, help="Write what is found now to the baseline.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Form of the findings.",
)
@click.option("--statistics", is_flag=True, help="How often each rule fired, instead of the findings.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the findings to this file."
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings.")
def command(
    *,
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fix: bool,
    unsafe: bool,
    diff: bool,
    reason: str | None,
    baseline: Path | None,
    update: bool,
    form: str,
    statistics: bool,
    output: Path | None,
    exit_zero: bool,
) -> int:
    """Find what makes PyTorch code slow or wrong in its text: files, notebooks, folders, patterns; - reads stdin.

    Exit code 0: nothing found; 1: findings; 2: a wrong call, or a file or rule that failed. Settings stand in
    [tool.pyrometer.rules] of pyproject.toml; `# pyrometer: ignore[PYR101] reason` ignores a finding.
    """
    from pyrometer.rules.settings import load_rule_settings, with_rule_flags

    changes, shape, known = (
        Changes(fix, unsafe, diff, reason),
        Shape(form, statistics, output),
        Known(baseline, update),
    )
    _refuse_conflicts(paths, changes, shape, known)
    settings = with_rule_flags(load_rule_settings(Path.cwd()), select=_split(select), ignore=_split(ignore))
    if paths == (STDIN,):
        code = lint_stdin(settings, changes, shape)
    else:
        code = lint_named(paths, settings, changes, shape, known)
    return ExitCode.OK if exit_zero and code == ExitCode.FOUND else code


def _refuse_conflicts(paths: tuple[str, ...], changes: Changes, shape: Shape, known: Known) -> None:
    """Refuse what would be left undone in silence."""
    if not paths:
        raise UsageError("no path was named; pass files, folders, patterns, or - for stdin")
    if STDIN in paths and (len(paths) > 1 or any(known) or changes.reason is not None):
        raise UsageError("- reads one text from stdin; leave out other paths, --baseline and --add-ignores")
    if changes.unsafe and not (changes.fix or changes.diff):
        raise UsageError("--unsafe-fixes goes with --fix or --diff")
    if changes.fix and changes.diff:
        raise UsageError("--diff shows what --fix would write; pass one of them")
    if changes.reason is not None and (changes.fix or changes.diff or any(known)):
        raise UsageError(
            "--add-ignores goes without fixes and baselines; fix first, then ignore what is left"
        )
    if known.update and changes.any:
        raise UsageError("--update-baseline changes no sources; fix first, then write it")
    if shape.statistics and shape.form not in ("text", "json"):
        raise UsageError(f"--statistics: got --format {shape.form}; legal are text and json")
    if changes.diff and (shape.form != "text" or shape.statistics or shape.output):
        raise UsageError("--diff prints a diff; leave out --format, --statistics and --output")


def _split(texts: tuple[str, ...]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]
