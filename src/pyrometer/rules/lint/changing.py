"""Change many files: fixes, or comments that ignore; one that fails is told and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyrometer.advice import FixClass
from pyrometer.errors import InputError
from pyrometer.rules.lint.excusing import excuse_file
from pyrometer.rules.lint.files import SourceFile
from pyrometer.rules.lint.fixing import FixedFile, fix_file, write_fixed
from pyrometer.rules.lint.run import rules_for
from pyrometer.rules.rule import Rule
from pyrometer.rules.settings import RuleSettings

Change: TypeAlias = Callable[[SourceFile, bytes, Sequence[Rule], Mapping[str, float]], FixedFile]
"""What a file becomes under rules and the limits that the user set: `fixes(...)` or `excuses(...)`."""


class Changed(NamedTuple):
    """What became of the files.

    Attributes:
        files: those that could be worked on, changed or not.
        failures: the others, a line each.
    """

    files: list[FixedFile]
    failures: list[str]

    @property
    def num_applied(self) -> int:
        """Fixes or comments that were put in."""
        return sum(len(file.fixed.applied) for file in self.files)

    @property
    def notes(self) -> list[str]:
        """Fixes that were not kept, a line each."""
        return [f"{file.file.shown}: {said}" for file in self.files for said in file.fixed.dropped]


def fixes(classes: frozenset[FixClass]) -> Change:
    """Apply the fixes of these classes."""
    return lambda file, data, rules, limits: fix_file(file, data, rules, classes, limits)


def excuses(reason: str) -> Change:
    """Ignore what is found, with this reason."""
    return lambda file, data, rules, limits: excuse_file(file, data, rules, reason, limits)


def change_files(
    files: Iterable[SourceFile], settings: RuleSettings, change: Change, *, write: bool
) -> Changed:
    """Change each file, and write it if asked to; a file is written whole or not at all."""
    rules = settings.chosen()
    changed = Changed([], [])
    for file in files:
        here = rules_for(file, settings, rules)
        one = _changed(file, here, change, settings.limits, write=write)
        if isinstance(one, str):
            changed.failures.append(one)
        else:
            changed.files.append(one)
    return changed


def _changed(
    file: SourceFile, rules: Sequence[Rule], change: Change, limits: Mapping[str, float], *, write: bool
) -> FixedFile | str:
    """The changed file, or why it could not be changed."""
    try:
        data = file.path.read_bytes()
        fixed = change(file, data, rules, limits)
        if write:
            write_fixed(fixed, data)
    except InputError as error:
        return str(error)
    except OSError as error:
        return f"{file.shown}: cannot be read: {error.strerror or error}"
    return fixed
