"""Fixes: applied to the text until nothing is left to fix, and written whole or not at all."""

from __future__ import annotations

import ast
import difflib
import io
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pyrometer.advice import FixClass
from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.rules.lint.check import Found, check_text
from pyrometer.rules.lint.document import Document, read_document
from pyrometer.rules.lint.files import SourceFile
from pyrometer.rules.match import Fix
from pyrometer.rules.rule import Rule
from pyrometer.source.edit import Edit, apply_edits
from pyrometer.source.lines import split_lines
from pyrometer.source.module import DEFAULTS

EXACT: frozenset[FixClass] = frozenset({"exact"})
EVERY_CLASS: frozenset[FixClass] = frozenset({"exact", "tolerance", "semantic"})

_ROUNDS = 20  # fixes that call for fixes end long before; two that undo each other never would
Finder: TypeAlias = Callable[[str], Sequence[Found]]


class Fixed(NamedTuple):
    """A text after its fixes.

    Attributes:
        text: the new text.
        applied: code of each fix that is in it.
        dropped: fixes that were not kept, a line each.
    """

    text: str
    applied: list[str]
    dropped: list[str]


class FixedFile(NamedTuple):
    """A file after its fixes.

    Attributes:
        file: which.
        before: its text.
        fixed: its new text, and what is in it.
        content: its new bytes; None where nothing changed.
    """

    file: SourceFile
    before: str
    fixed: Fixed
    content: bytes | None

    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        before, after = _lines(self.before), _lines(self.fixed.text)
        return "".join(difflib.unified_diff(before, after, self.file.shown, self.file.shown))


def fix_file(
    file: SourceFile,
    data: bytes,
    rules: Sequence[Rule],
    classes: frozenset[FixClass],
    limits: Mapping[str, float] = DEFAULTS,
) -> FixedFile:
    """Fix the content of a file; nothing is written.

    Raises:
        InputError: it cannot be read as Python.
    """
    document = read_document(file.shown, data)
    fixed = fix_text(document.text, lambda text: check_text(file.shown, text, rules, limits).found, classes)
    return _encoded(file, document, fixed)


def fix_text(text: str, find: Finder, classes: frozenset[FixClass]) -> Fixed:
    """Apply the fixes of these classes, again and again until there are none.

    Fixes that overlap are applied one per round. A fix after which the text is no Python any more is dropped. So is what
    does not come to rest.
    """
    applied: list[str] = []
    dropped: dict[_Key, str] = {}
    before = text
    for _ in range(_ROUNDS):
        open_fixes = [
            (hit, hit.match.fix)
            for hit in find(text)
            if hit.match.fix is not None and hit.match.fix.fix_class in classes
        ]
        fixes = [(hit, fix) for hit, fix in open_fixes if _key(hit, text) not in dropped]
        if not fixes:
            return Fixed(text, applied, list(dropped.values()))
        text = _one_round(text, fixes, applied, dropped)
    codes = ", ".join(sorted({hit.rule.code for hit, _ in fixes}))
    return Fixed(
        before, [], [f"fixes of {codes} do not come to rest after {_ROUNDS} rounds; nothing was changed"]
    )


def write_fixed(fixed: FixedFile, data: bytes) -> None:
    """Put a fixed file in its place.

    Args:
        fixed: the file.
        data: its content when it was read.

    Raises:
        InputError: it has changed since, or cannot be written.
    """
    if fixed.content is None:
        return
    path = fixed.file.path
    try:
        if path.read_bytes() != data:
            raise InputError(
                f"{fixed.file.shown}: has changed while it was linted; it was left alone, run again"
            )
        with replacing(path) as beside:
            beside.write_bytes(fixed.content)
            shutil.copymode(path, beside)
    except OSError as error:
        raise InputError(f"{fixed.file.shown}: cannot be written: {error.strerror or error}") from error


_Key: TypeAlias = "tuple[str, str, tuple[str, ...]]"


def _key(hit: Found, text: str) -> _Key:
    """What identifies a fix after lines have moved."""
    line = split_lines(text)[hit.match.line - 1]
    edits = hit.match.fix.edits if hit.match.fix is not None else ()
    return hit.rule.code, line, tuple(edit.text for edit in edits)


def _one_round(
    text: str, fixes: Iterable[tuple[Found, Fix]], applied: list[str], dropped: dict[_Key, str]
) -> str:
    """Apply what does not overlap; what breaks the text goes to the dropped ones."""
    chosen: list[tuple[Found, Fix]] = []
    taken: list[Edit] = []
    for hit, fix in fixes:
        if not any(_overlap(edit, other) for edit in fix.edits for other in taken):
            chosen.append((hit, fix))
            taken += fix.edits
    changed = edited(text, taken)
    if changed is not None:
        applied += [hit.rule.code for hit, _ in chosen]
        return changed
    return _one_by_one(text, chosen, applied, dropped)


def _one_by_one(
    text: str, chosen: Sequence[tuple[Found, Fix]], applied: list[str], dropped: dict[_Key, str]
) -> str:
    """Together the fixes break the text: keep the first that does not, and drop those before it."""
    for hit, fix in chosen:
        changed = edited(text, fix.edits)
        if changed is not None:
            applied.append(hit.rule.code)
            return changed
        dropped[_key(hit, text)] = (
            f"line {hit.match.line}: {hit.rule.code} {hit.rule.name}: its fix would break the file and was dropped"
        )
    return text


def edited(text: str, edits: Sequence[Edit]) -> str | None:
    """The text after edits that can be made, and after which it is still Python and another text than before."""
    try:
        changed = apply_edits(text, edits)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings, which are none of ours
            ast.parse(changed)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return changed if changed != text else None


def _overlap(one: Edit, other: Edit) -> bool:
    first, second = sorted((_span(one), _span(other)))
    return second[0] < first[1] or second[0] == first[0]


def _span(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.line, edit.column), (edit.end_line, edit.end_column)


def _encoded(file: SourceFile, document: Document, fixed: Fixed) -> FixedFile:
    before = document.text
    if fixed.text == before:
        return FixedFile(file, before, fixed, None)
    try:
        return FixedFile(file, before, fixed, document.encode(fixed.text))
    except InputError as error:
        dropped = [*fixed.dropped, f"{', '.join(sorted(set(fixed.applied)))}: {error}; nothing was changed"]
        return FixedFile(file, before, Fixed(before, [], dropped), None)


def _lines(text: str) -> list[str]:
    lines = io.StringIO(text, newline="").readlines()
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines
