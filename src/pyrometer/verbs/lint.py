"""`pm.lint`: rules on source text, without torch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pyrometer.redaction import redacted
from pyrometer.rules.lint.files import files_of
from pyrometer.rules.lint.habits import grouped
from pyrometer.rules.lint.result import LintResult
from pyrometer.rules.lint.run import lint_files
from pyrometer.rules.settings import RuleSettings, load_rule_settings, with_rule_flags


def lint(
    paths: str | Path | Iterable[str | Path],
    *,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    rules: RuleSettings | None = None,
    jobs: int = 1,
) -> LintResult:
    """Find what makes PyTorch code slow or wrong in its text, as `pyrometer lint` does.

    `print` shows the findings, `.findings` holds them, `.to_json()` is what the verb prints with `--json`.

    Args:
        paths: files, notebooks, folders or patterns; one or several.
        select: only these rules: codes, names, beginnings of codes.
        ignore: not these, nor what the settings ignore.
        rules: the settings; by default those of the working directory, `[tool.pyrometer.rules]`.
        jobs: processes to use.

    Raises:
        InputError: there is no such path, or the settings cannot be used.
        UsageError: a selector names no rule.

    >>> lint(__file__).num_files
    1
    """
    settings = rules or load_rule_settings(Path.cwd())
    settings = with_rule_flags(settings, select=map(str, _listed(select)), ignore=map(str, _listed(ignore)))
    files = files_of([os.fspath(path) for path in _listed(paths)], settings)
    return redacted(grouped(lint_files(files, settings, jobs)))


def _listed(given: str | Path | Iterable[str | Path]) -> list[str | Path]:
    return [given] if isinstance(given, (str, Path)) else list(given)
