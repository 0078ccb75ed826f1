"""How `pyrometer lint` runs: look, change, hold against the baseline, tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.lint_flags import LintFlags
from pyrometer.cli.printing import document_json, print_view
from pyrometer.errors import ExitCode, InputError
from pyrometer.files import replacing
from pyrometer.redaction import redacted

if TYPE_CHECKING:
    from pyrometer.rules.lint.files import SourceFile
    from pyrometer.rules.lint.fixing import FixedFile
    from pyrometer.rules.lint.result import LintResult
    from pyrometer.rules.settings import RuleSettings


def lint_named(asked: LintFlags) -> int:
    """Lint or change files, folders and patterns; the exit code."""
    from pyrometer.rules.lint.changing import change_files
    from pyrometer.rules.lint.files import files_of
    from pyrometer.rules.lint.run import lint_files

    settings = asked.settings()
    files = files_of(asked.paths, settings)
    result = lint_files(files, settings, _num_cores(), cache=True)
    if not asked.changes:
        return _tell(_less_known(result, files, asked), asked)
    named = {
        finding.file for finding in result.findings if finding.fix is not None or asked.reason is not None
    }
    changed = change_files(
        [file for file in files if file.shown in named], settings, asked.change(), write=not asked.diff
    )
    for note in changed.notes:
        _note(asked, f"note: {note}")
    for failure in changed.failures:
        click.echo(f"error: {failure}", err=True)
    if asked.diff:
        code = _show_diff(changed.files)
    else:
        what = "comments" if asked.reason is not None else "fixes"
        num_files = sum(file.content is not None for file in changed.files)
        _note(asked, f"{what}: {changed.num_applied}; files changed: {num_files}")
        code = _tell_what_is_left(files, settings, asked)
    return ExitCode.FAILURE if changed.failures else code


def _tell_what_is_left(files: Sequence[SourceFile], settings: RuleSettings, asked: LintFlags) -> int:
    from pyrometer.rules.lint.run import lint_files

    if asked.fix_only:
        return ExitCode.OK
    result = lint_files(files, settings, _num_cores(), cache=True)
    return _tell(_less_known(result, files, asked), asked)


def lint_stdin(asked: LintFlags) -> int:
    """Lint or change the text on stdin; a changed one goes to stdout, its findings then to stderr."""
    from pyrometer.rules.lint.files import SourceFile, shown
    from pyrometer.rules.lint.result import combine
    from pyrometer.rules.lint.run import lint_bytes, rules_for
    from pyrometer.rules.measuring.unreadable_file import RULE as UNREADABLE

    settings, data, name = asked.settings(), sys.stdin.buffer.read(), asked.stdin_filename
    path = Path(name or "stdin.py")
    file = SourceFile(path, "<stdin>" if name is None else shown(path))
    if name is not None and settings.excludes(path):
        return _tell_excluded(data, file.shown, asked)
    rules = rules_for(file, settings, settings.chosen())
    result = combine([lint_bytes(file.shown, data, rules, settings.limits)])
    if asked.changes and not any(finding.code == UNREADABLE.code for finding in result.findings):
        fixed = asked.change()(file, data, rules, settings.limits)
        for said in fixed.fixed.dropped:
            _note(asked, f"note: {file.shown}: {said}")
        if asked.diff:
            return _show_diff([fixed])
        data = data if fixed.content is None else fixed.content
        result = combine([lint_bytes(file.shown, data, rules, settings.limits)])
    if asked.fixes:
        sys.stdout.buffer.write(data)  # what an editor pipes through comes back, changed or not
    return ExitCode.OK if asked.fix_only else _tell(result, asked, stderr=asked.fixes)


def _tell_excluded(data: bytes, name: str, asked: LintFlags) -> int:
    if asked.fixes:
        sys.stdout.buffer.write(data)
    _note(asked, f"note: {name}: left out by the settings or by --exclude")
    return ExitCode.OK


def show_files(asked: LintFlags) -> int:
    """List the files that would be looked at."""
    from pyrometer.rules.lint.files import files_of

    for file in files_of(asked.paths, asked.settings()):
        click.echo(file.shown)
    return ExitCode.OK


def _note(asked: LintFlags, text: str) -> None:
    if not asked.quiet:
        click.echo(text, err=True)


def _less_known(result: LintResult, files: Sequence[SourceFile], asked: LintFlags) -> LintResult:
    """Take out what the baseline knows; or write the baseline, which then knows all."""
    from pyrometer.rules.lint.baseline import (
        DEFAULT_NAME,
        Baseline,
        num_gone,
        read_baseline,
        without_known,
        write_baseline,
    )

    if asked.update:
        path = asked.baseline or Path(DEFAULT_NAME)
        before = read_baseline(path) if path.exists() else Baseline()
        count = write_baseline(path, result, [file.shown for file in files], before)
        _note(asked, f"wrote {path}; findings: {count}")
        return without_known(result, read_baseline(path), path)
    if asked.baseline is None:
        return result
    baseline = read_baseline(asked.baseline)
    gone = num_gone(result, baseline, asked.baseline, [file.shown for file in files])
    if gone:
        _note(
            asked, f"note: gone since {asked.baseline} was written: {gone}; --update-baseline takes them out"
        )
    return without_known(result, baseline, asked.baseline)


def _show_diff(files: Iterable[FixedFile]) -> int:
    text = "".join(file.diff() for file in files)
    click.echo(text, nl=False)
    return ExitCode.FOUND if text else ExitCode.OK


def _tell(result: LintResult, asked: LintFlags, *, stderr: bool = False) -> int:
    """Print the result in its form, the summary to stderr; and say the exit code."""
    from pyrometer.rules.lint.habits import grouped
    from pyrometer.rules.lint.output.text import summary_of

    result = redacted(grouped(result))
    if asked.output is not None:
        _write(_rendered(result, asked), asked.output)
    elif asked.form == "full" and result.findings:
        from pyrometer.rules.lint.output.full import full_view

        print_view(full_view(result), stderr=stderr)
    else:
        click.echo(_rendered(result, asked), nl=False, err=stderr)
    for failure in result.failures:
        click.echo(f"error: {failure}", err=True)
    _note(asked, summary_of(result))
    if result.failures:
        return ExitCode.FAILURE
    return ExitCode.FOUND if result.findings else ExitCode.OK


def _write(text: str, path: Path) -> None:
    try:
        with replacing(path) as beside:
            beside.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _rendered(result: LintResult, asked: LintFlags) -> str:
    from pyrometer.rules.lint.output import full, github, gitlab, junit, sarif, text
    from pyrometer.rules.lint.output import json as as_json

    if asked.statistics:
        return text.statistics_text(result) if asked.form != "json" else _json(text.statistics_of(result))
    forms: dict[str, Callable[[LintResult], str]] = {
        "text": text.text_of,
        "concise": text.text_of,
        "full": full.plain_text,
        "json": lambda found: _json(as_json.json_of(found)),
        "sarif": lambda found: _json(sarif.sarif_of(found)),
        "github": github.github_of,
        "gitlab": lambda found: _json(gitlab.gitlab_of(found)),
        "junit": junit.junit_of,
    }
    return forms[asked.form](result)


def _json(document: Any) -> str:
    return document_json(document).decode() + "\n"


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
