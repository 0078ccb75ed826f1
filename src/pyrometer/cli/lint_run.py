"""How `pyrometer lint` runs: look, change, hold against the baseline, tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pyrometer.cli.printing import document_json, print_view
from pyrometer.errors import ExitCode, InputError
from pyrometer.files import replacing

if TYPE_CHECKING:
    from pyrometer.rules.lint.changing import Change
    from pyrometer.rules.lint.files import SourceFile
    from pyrometer.rules.lint.fixing import FixedFile
    from pyrometer.rules.lint.result import LintResult
    from pyrometer.rules.settings import RuleSettings


class Changes(NamedTuple):
    """What is to be done to files: nothing, fixes, or comments that ignore."""

    fix: bool
    unsafe: bool
    diff: bool
    reason: str | None

    @property
    def any(self) -> bool:
        """Whether any text changes."""
        return self.fix or self.diff or self.reason is not None

    def change(self) -> Change:
        """What a file becomes."""
        from pyrometer.rules.lint.changing import excuses, fixes
        from pyrometer.rules.lint.fixing import EVERY_CLASS, EXACT

        return (
            excuses(self.reason) if self.reason is not None else fixes(EVERY_CLASS if self.unsafe else EXACT)
        )


class Known(NamedTuple):
    """The baseline to hold the findings against, and whether to write it."""

    path: Path | None
    update: bool


class Shape(NamedTuple):
    """How findings are told."""

    form: str
    statistics: bool
    output: Path | None


def lint_named(
    paths: tuple[str, ...],
    settings: RuleSettings,
    changes: Changes,
    shape: Shape,
    known: Known,
) -> int:
    """Lint or change files, folders and patterns; the exit code."""
    from pyrometer.rules.lint.changing import change_files
    from pyrometer.rules.lint.files import files_of
    from pyrometer.rules.lint.run import lint_files

    files = files_of(paths, settings)
    result = lint_files(files, settings, _num_cores(), cache=True)
    if not changes.any:
        return _tell(_less_known(result, files, known), shape)
    named = {
        finding.file for finding in result.findings if finding.fix is not None or changes.reason is not None
    }
    changed = change_files(
        [file for file in files if file.shown in named], settings, changes.change(), write=not changes.diff
    )
    for note in changed.notes:
        click.echo(f"note: {note}", err=True)
    for failure in changed.failures:
        click.echo(f"error: {failure}", err=True)
    if changes.diff:
        code = _show_diff(changed.files)
    else:
        what = "comments" if changes.reason is not None else "fixes"
        num_files = sum(file.content is not None for file in changed.files)
        click.echo(f"{what}: {changed.num_applied}; files changed: {num_files}", err=True)
        result = lint_files(files, settings, _num_cores(), cache=True)
        code = _tell(_less_known(result, files, known), shape)
    return ExitCode.FAILURE if changed.failures else code


def lint_stdin(settings: RuleSettings, changes: Changes, shape: Shape) -> int:
    """Lint or change the text on stdin; a changed one goes to stdout, its findings then to stderr."""
    from pyrometer.rules.lint.files import SourceFile
    from pyrometer.rules.lint.result import combine
    from pyrometer.rules.lint.run import lint_bytes
    from pyrometer.rules.measuring.unreadable_file import RULE as UNREADABLE

    data = sys.stdin.buffer.read()
    file, rules = SourceFile(Path("stdin.py"), "<stdin>"), settings.chosen()
    result = combine([lint_bytes(file.shown, data, rules, settings.limits)])
    if changes.any and not any(finding.code == UNREADABLE.code for finding in result.findings):
        fixed = changes.change()(file, data, rules, settings.limits)
        for said in fixed.fixed.dropped:
            click.echo(f"note: {file.shown}: {said}", err=True)
        if changes.diff:
            return _show_diff([fixed])
        data = data if fixed.content is None else fixed.content
        result = combine([lint_bytes(file.shown, data, rules, settings.limits)])
    if changes.fix:
        sys.stdout.buffer.write(data)  # what an editor pipes through comes back, changed or not
    return _tell(result, shape, stderr=changes.fix)


def _less_known(result: LintResult, files: Sequence[SourceFile], known: Known) -> LintResult:
    """Take out what the baseline knows; or write the baseline, which then knows all."""
    from pyrometer.rules.lint.baseline import (
        DEFAULT_NAME,
        Baseline,
        num_gone,
        read_baseline,
        without_known,
        write_baseline,
    )

    if known.update:
        path = known.path or Path(DEFAULT_NAME)
        before = read_baseline(path) if path.exists() else Baseline()
        count = write_baseline(path, result, [file.shown for file in files], before)
        click.echo(f"wrote {path}; findings: {count}", err=True)
        return without_known(result, read_baseline(path), path)
    if known.path is None:
        return result
    baseline = read_baseline(known.path)
    gone = num_gone(result, baseline, known.path, [file.shown for file in files])
    if gone:
        click.echo(
            f"note: gone since {known.path} was written: {gone}; --update-baseline takes them out", err=True
        )
    return without_known(result, baseline, known.path)


def _show_diff(files: Iterable[FixedFile]) -> int:
    text = "".join(file.diff() for file in files)
    click.echo(text, nl=False)
    return ExitCode.FOUND if text else ExitCode.OK


def _tell(result: LintResult, shape: Shape, *, stderr: bool = False) -> int:
    """Print the result in its form, the summary to stderr; and say the exit code."""
    from pyrometer.rules.lint.output.text import summary_of

    if shape.output is not None:
        _write(_rendered(result, shape), shape.output)
    elif shape.form == "full" and result.findings:
        from pyrometer.rules.lint.output.full import full_view

        print_view(full_view(result), stderr=stderr)
    else:
        click.echo(_rendered(result, shape), nl=False, err=stderr)
    for failure in result.failures:
        click.echo(f"error: {failure}", err=True)
    click.echo(summary_of(result), err=True)
    if result.failures:
        return ExitCode.FAILURE
    return ExitCode.FOUND if result.findings else ExitCode.OK


def _write(text: str, path: Path) -> None:
    try:
        with replacing(path) as beside:
            beside.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _rendered(result: LintResult, shape: Shape) -> str:
    from pyrometer.rules.lint.output import full, github, sarif, text
    from pyrometer.rules.lint.output import json as as_json

    if shape.statistics:
        return text.statistics_text(result) if shape.form == "text" else _json(text.statistics_of(result))
    forms: dict[str, Callable[[LintResult], str]] = {
        "text": text.text_of,
        "full": full.plain_text,
        "json": lambda found: _json(as_json.json_of(found)),
        "sarif": lambda found: _json(sarif.sarif_of(found)),
        "github": github.github_of,
    }
    return forms[shape.form](result)


def _json(document: Any) -> str:
    return document_json(document).decode() + "\n"


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
