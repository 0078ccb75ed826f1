"""Findings that the user chose not to see: by a comment in the source, or by a pattern of paths in the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.rules.joining import module_of
from pyrometer.rules.lint.suppression import ignore_for, ignores_in
from pyrometer.rules.rule import Module
from pyrometer.rules.settings import RuleSettings


def hidden_by(modules: Sequence[Module], settings: RuleSettings) -> Callable[[Finding], Suppressed | None]:
    """A function that says why a finding is not to be shown, or null when it is."""
    comments = {module.path: ignores_in(module) for module in modules}
    elsewhere = {module.path: settings.ignored_in(Path(module.path)) for module in modules}

    def look(finding: Finding) -> Suppressed | None:
        module = module_of(finding.where.file, modules)
        if module is None:
            return None
        if finding.code in elsewhere[module.path]:
            return _suppressed(finding, "ignored in this file by the settings", "configuration")
        ignore = ignore_for(comments[module.path], finding.code, finding.where.line or 0)
        return None if ignore is None else _suppressed(finding, ignore.reason, "comment")

    return look


def _suppressed(finding: Finding, reason: str, by: str) -> Suppressed:
    return Suppressed(code=finding.code, name=finding.name, where=finding.where, reason=reason, by=by)
